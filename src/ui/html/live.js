// Reloads the page when a session changes, and handles keys. Pages work without it.
"use strict";
(() => {
  const root = new URL(".", document.currentScript.src);
  const status = document.getElementById("live");
  let known = null;

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
    old.replaceWith(document.adoptNode(fresh));
    fresh.dataset.source = source;
    document.title = page.title;
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

  look();
  setInterval(look, 1500);
})();
