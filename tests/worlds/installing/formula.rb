# Does with a formula what Homebrew does, as far as ours goes: chooses the archive for this machine,
# downloads it, compares the checksum, unpacks it, runs `install` and then `test`.
# usage: ruby formula.rb FORMULA PREFIX
require "digest"
require "fileutils"
require "net/http"
require "pathname"
require "tmpdir"
require "uri"

# A folder with Homebrew's way of copying into it.
class Place < Pathname
  def install(*files)
    mkpath
    files.flatten.each { |file| FileUtils.cp_r(file, to_s, preserve: true) }
  end

  def /(other)
    Place.new(super)
  end
end

class Formula
  FIELDS = [:desc, :homepage, :version, :license, :url, :sha256].freeze
  LINUX = RUBY_PLATFORM.include?("linux")
  ARM = RUBY_PLATFORM.match?(/aarch64|arm64/)

  class << self
    attr_reader :set, :test_block

    FIELDS.each { |field| define_method(field) { |value| (@set ||= {})[field] = value } }

    def on_macos = (yield unless LINUX)
    def on_linux = (yield if LINUX)
    def on_arm = (yield if ARM)
    def on_intel = (yield unless ARM)
    def test(&block) = @test_block = block
  end

  attr_reader :testpath

  def initialize(prefix, testpath)
    @prefix = Place.new(prefix)
    @testpath = Pathname.new(testpath)
  end

  def version = self.class.set[:version]
  def bin = @prefix / "bin"
  def man1 = @prefix / "share/man/man1"
  def bash_completion = @prefix / "etc/bash_completion.d"
  def zsh_completion = @prefix / "share/zsh/site-functions"
  def fish_completion = @prefix / "share/fish/vendor_completions.d"

  def shell_output(command) = `#{command}`.tap { raise "#{command} failed" unless $?.success? }

  def system(*words)
    raise "#{words.join(" ")} failed" unless Kernel.system(*words.map(&:to_s), out: File::NULL)
  end

  def assert_match(wanted, text) = (raise "no #{wanted} in #{text}" unless text.include?(wanted))
  def assert_predicate(value, name) = (raise "not #{name}: #{value}" unless value.public_send(name))
end

formula, prefix = ARGV
load File.expand_path(formula)
set = Teddy.set
missing = Formula::FIELDS.reject { |field| set[field] }
abort "the formula lacks #{missing.join(", ")}" unless missing.empty?

archive = Net::HTTP.get(URI(set[:url]))
abort "the checksum does not match" unless Digest::SHA256.hexdigest(archive) == set[:sha256]

Dir.mktmpdir do |work|
  File.binwrite("#{work}/archive.tar.gz", archive)
  Dir.mkdir("#{work}/files")
  Kernel.system("tar", "-xzf", "#{work}/archive.tar.gz", "-C", "#{work}/files") || abort("no archive")
  # The one folder in the archive is left out, as Homebrew does.
  teddy = Teddy.new(File.expand_path(prefix), "#{work}/test")
  Dir.mkdir("#{work}/test")
  Dir.chdir(Dir["#{work}/files/*"].first) { teddy.install }
  Dir.chdir("#{work}/test") { teddy.instance_eval(&Teddy.test_block) }
end
