// Reloads the page when a session changes, handles keys, and composes comments. Pages work without it.
"use strict";
(() => {
  const root = new URL(".", document.currentScript.src);
  const status = document.getElementById("live");
  let known = null;

  // Comments on lines of a waiting plan, composed into a command. Nothing of them is sent.
  const comments = [];
  let chosen = null;
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  // A terminal would obey control characters in a pasted command.
  const printable = (text) => text.replace(/[^\P{Cc}\n]/gu, " ").trim();

  const showComments = (note) => {
    const section = document.getElementById("comment");
    if (!section) return;
    section.querySelector(".compose").hidden = false;
    section.querySelector("[name=remove]").disabled = comments.length === 0;
    section.querySelector("[role=status]").textContent = note;
    const code = section.querySelector("pre code");
    section.dataset.example ??= code.textContent;
    const options = comments.map((comment) => ` --comment ${comment}`);
    code.textContent = comments.length ? section.dataset.command + options.join("") : section.dataset.example;
  };

  const addComment = (section) => {
    const field = (name) => section.querySelector(`[name=${name}]`);
    const [file] = field("file").selectedOptions;
    const [, first, last = first] = field("lines").value.trim().match(/^(\d+)(?:-(\d+))?$/) ?? [];
    const text = printable(field("text").value);
    const [from, to, all] = [first, last, file.dataset.lines].map(Number);
    if (!first || from < 1 || to < from) return showComments("Write the lines as 3 or 3-5.");
    if (to > all) return showComments(`After the plan, ${all} is the last line of the file.`);
    if (!text) return showComments("The comment has no text.");
    comments.push(`${file.value}:${from === to ? from : `${from}-${to}`}=${quoted(text)}`);
    field("text").value = "";
    showComments("Added.");
  };

  // Chooses the line of a row of the difference, or with Shift the range to it.
  const chooseLine = (row, isRange) => {
    const line = Number(row.cells[1].textContent);
    const { id } = row.closest("details.file");
    const section = document.getElementById("comment");
    const file = section.querySelector(`option[data-file="${id}"]`);
    if (!line || !file) return;
    if (!isRange || chosen?.id !== id) chosen = { id, line };
    const [from, to] = [Math.min(chosen.line, line), Math.max(chosen.line, line)];
    file.selected = true;
    section.querySelector("[name=lines]").value = from === to ? `${from}` : `${from}-${to}`;
    showComments(`Line ${from === to ? from : `${from} to ${to}`} of ${file.textContent}`);
  };

  document.addEventListener("click", (event) => {
    const section = document.getElementById("comment");
    if (!section) return;
    const row = event.target.closest(".diff tr:not(.hunk)");
    const { name } = event.target;
    // A selection of text is for copying, except if Shift-click made it.
    if (row && (event.shiftKey || getSelection().isCollapsed)) chooseLine(row, event.shiftKey);
    else if (name === "add") addComment(section);
    else if (name === "remove") {
      comments.pop();
      showComments("Removed.");
    }
  });

  // Keeps what was typed if the page is replaced.
  const keepComments = (old, fresh) => {
    const [before, after] = [old, fresh].map((main) => main.querySelector("#comment"));
    if (!before || !after) return;
    for (const name of ["file", "lines", "text"]) {
      const [from, to] = [before, after].map((section) => section.querySelector(`[name=${name}]`));
      if (name !== "file" || [...to.options].some((option) => option.value === from.value)) to.value = from.value;
    }
    return before.dataset.plan !== after.dataset.plan;
  };

  // Replaces `main`. Keeps open details, checked boxes and the focus.
  const renew = async () => {
    const answer = await fetch(location.href, { cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main");
    const old = document.querySelector("main");
    if (!fresh || fresh.outerHTML === old.dataset.source) return;
    const source = fresh.outerHTML;
    for (const details of old.querySelectorAll("details[id]")) {
      const twin = page.getElementById(details.id);
      if (twin) twin.open = details.open;
    }
    for (const box of old.querySelectorAll("input[type=checkbox]:checked")) {
      const twin = page.querySelector(`input[value="${CSS.escape(box.value)}"]`);
      if (twin) twin.checked = true;
    }
    const focused = document.activeElement?.closest("a")?.getAttribute("href");
    const isOtherPlan = keepComments(old, fresh);
    const typed = document.activeElement?.closest("#comment [name]")?.name;
    old.replaceWith(document.adoptNode(fresh));
    showComments(isOtherPlan ? "The plan has changed. Check the lines of your comments." : "");
    fresh.dataset.source = source;
    document.title = page.title;
    if (typed) fresh.querySelector(`#comment [name=${typed}]`)?.focus({ preventScroll: true });
    if (focused) fresh.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };

  const look = async () => {
    if (document.visibilityState === "hidden") return;
    try {
      const answer = await fetch(new URL("state", root), { cache: "no-store" });
      const now = await answer.text();
      if (!answer.ok) throw new Error(now);
      if (known !== null && known !== now) await renew();
      known = now;
      status.textContent = "live";
      status.className = "on";
    } catch {
      status.textContent = "not connected";
      status.className = "off";
    }
  };

  const step = (by) => {
    const items = [...document.querySelectorAll("[data-item]")];
    const at = items.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by;
    items[Math.max(0, Math.min(items.length - 1, next))]?.focus();
  };
  const follow = (rel) => document.querySelector(`link[rel=${rel}]`)?.href;
  const keys = { n: "next", p: "prev", u: "up" };

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (target.closest("input, textarea, select")) {
      if (key === "Escape") target.blur();
      return;
    }
    if (key === "j") step(1);
    else if (key === "k") step(-1);
    else if (key === "/") document.querySelector("input[type=search]")?.focus();
    else if (keys[key] && follow(keys[key])) location.assign(follow(keys[key]));
    else return;
    event.preventDefault();
  });

  showComments("");
  look();
  setInterval(look, 1500);
})();
