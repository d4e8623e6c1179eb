/* Shows blocks one by one. Runs in a world of its own that page content cannot reach; the
   content's own world has no script at all. Python calls Verso.*; what a person does goes back
   through `bridge.message`. */
"use strict";
const Verso = (() => {
  const scroller = document.getElementById("scroller");
  const page = document.getElementById("page");
  const blocks = new Map();
  const furniture = new Set(["header", "footer", "page_number"]);
  let bridge = null;
  let colours = {};
  let hover = "";
  let chosen = "";
  let caret = "";
  let following = false;
  let led = false; // whether a person moved this view last
  let measuring = 0;

  const tell = (kind, data = {}) => { if (bridge) bridge.message(JSON.stringify({ kind, ...data })); };
  const scrollState = () => [scroller.scrollTop, scroller.clientHeight, scroller.scrollHeight];

  function measure() {
    measuring = 0;
    const base = scroller.getBoundingClientRect().top - scroller.scrollTop;
    const extents = [];
    for (const [id, block] of blocks) {
      const box = block.element.getBoundingClientRect();
      extents.push([id, block.index, box.top - base, box.bottom - base, box.width]);
    }
    extents.sort((a, b) => a[1] - b[1]);
    tell("measured", { extents, scroll: scrollState() });
  }
  // Not a timer: those never come where the content's script is switched off.
  function measureSoon() { if (!measuring) measuring = requestAnimationFrame(measure); }

  // A block that grows is set again and again: formulas are drawn once.
  const drawn = new Map();
  function draw(element, tex, displayMode) {
    const key = displayMode + tex;
    if (!drawn.has(key)) {
      if (drawn.size > 3000) drawn.clear();
      const made = document.createElement("span");
      katex.render(tex, made, { ...options, displayMode });
      drawn.set(key, made);
    }
    // Copies of nodes, not HTML: the policy refuses the styles that KaTeX sets when they are text.
    element.replaceChildren(...drawn.get(key).cloneNode(true).childNodes);
  }

  function typeset(element) {
    for (const math of element.querySelectorAll(".math.inline, .math.display")) {
      draw(math, math.textContent, math.classList.contains("display"));
    }
    for (const table of element.querySelectorAll("table")) {
      if (table.parentElement.closest("table")) continue;
      const wide = document.createElement("div");
      wide.className = "wide";
      table.replaceWith(wide);
      wide.append(table);
    }
    for (const image of element.querySelectorAll("img")) image.addEventListener("load", measureSoon);
  }
  const options = { throwOnError: false, trust: false, strict: "ignore", maxSize: 30, maxExpand: 500, output: "htmlAndMathml" };

  function make(block) {
    const element = document.createElement("section");
    element.dataset.id = block.id;
    element.dir = "auto";
    const order = document.createElement("span");
    order.className = "order";
    order.setAttribute("aria-hidden", "true");
    order.textContent = String(block.index + 1);
    const body = document.createElement("div");
    body.className = "body";
    element.append(order, body);
    const made = { element, body, index: block.index, html: null, label: null };
    let next = null;
    for (const other of page.children) {
      if (blocks.get(other.dataset.id).index > block.index) { next = other; break; }
    }
    page.insertBefore(element, next);
    blocks.set(block.id, made);
    return made;
  }

  function dress(made) {
    const names = ["block"];
    if (furniture.has(made.label)) names.push("furniture");
    if (/_(caption|footnote)$/.test(made.label)) names.push("caption");
    if (!made.html) names.push("empty");
    if (made.doubt) names.push("doubt");
    made.element.title = made.doubt || "";
    if (made.element.dataset.id === hover) names.push("hover");
    if (made.element.dataset.id === chosen) names.push("chosen");
    made.element.className = names.join(" ");
    made.element.style.setProperty("--c", colours[made.label] || colours[""] || "");
  }

  function atTop() {
    const top = scroller.getBoundingClientRect().top;
    for (const element of page.children) {
      const box = element.getBoundingClientRect();
      if (box.bottom > top) return { element, offset: box.top - top };
    }
    return null;
  }

  function placeCaret() {
    for (const old of page.querySelectorAll(".caret")) old.remove();
    const made = blocks.get(caret);
    if (!made) return;
    let spot = made.body;
    while (spot.lastElementChild && !spot.lastElementChild.matches(".katex, .katex-display, img, br")) {
      const last = spot.lastChild;
      if (last.nodeType === Node.TEXT_NODE && last.textContent.trim()) break;
      spot = spot.lastElementChild;
    }
    const mark = document.createElement("span");
    mark.className = "caret";
    spot.append(mark);
  }

  // While text comes its end stays in sight; a page that is done is shown from its beginning.
  function toLiveEnd() {
    const mark = page.querySelector(".caret");
    if (!mark) { led = false; scroller.scrollTop = 0; return; }
    const box = mark.getBoundingClientRect();
    const view = scroller.getBoundingClientRect();
    const over = box.bottom + 48 - view.bottom;
    if (over > 0) { led = false; scroller.scrollTop += over; }
  }

  function apply(batch) {
    const anchor = following ? null : atTop();
    if (batch.caret !== undefined) caret = batch.caret;
    for (const block of batch.blocks) {
      const made = blocks.get(block.id) || make(block);
      if (made.html !== block.html) {
        made.html = block.html;
        made.body.innerHTML = block.html;
        typeset(made.body);
      }
      made.label = block.label;
      made.doubt = block.doubt;
      dress(made);
    }
    placeCaret();
    if (following) toLiveEnd();
    else if (anchor && anchor.element.isConnected) {
      const moved = anchor.element.getBoundingClientRect().top - scroller.getBoundingClientRect().top - anchor.offset;
      if (Math.abs(moved) >= 1) { const mine = led; scroller.scrollTop += moved; led = mine; }
    }
    measureSoon();
    return batch.blocks.length;
  }

  function clear() {
    blocks.clear();
    page.replaceChildren();
    caret = hover = chosen = "";
    led = false;
    scroller.scrollTop = 0;
    measureSoon();
  }

  function mark(newHover, newChosen) {
    const touched = new Set([hover, chosen, newHover, newChosen]);
    hover = newHover;
    chosen = newChosen;
    for (const id of touched) if (blocks.has(id)) dress(blocks.get(id));
  }

  function scrollTo(top) { led = false; scroller.scrollTop = top; }
  function follow(on) { following = on; if (on) toLiveEnd(); }
  function empty(text) { page.dataset.empty = text; }
  function lead() { led = true; }

  function theme(values) {
    for (const [name, value] of Object.entries(values.variables)) document.documentElement.style.setProperty(name, value);
    document.documentElement.style.colorScheme = values.dark ? "dark" : "light";
    colours = values.colours;
    for (const made of blocks.values()) dress(made);
    measureSoon();
  }

  const idOf = (target) => { const block = target instanceof Element && target.closest(".block"); return block ? block.dataset.id : ""; };
  let told = "";
  function tellHover(id) { if (id !== told) { told = id; tell("hover", { id }); } }

  scroller.addEventListener("scroll", () => tell("scroll", { scroll: scrollState(), led }), { passive: true });
  for (const kind of ["wheel", "pointerdown", "touchmove"]) scroller.addEventListener(kind, () => { led = true; tell("touched"); }, { passive: true });
  document.addEventListener("mouseover", (event) => tellHover(idOf(event.target)));
  document.documentElement.addEventListener("mouseleave", () => tellHover(""));
  // A link goes nowhere by itself; after a person's click Python decides what becomes of it.
  function takeLink(event) {
    const link = event.target instanceof Element && event.target.closest("a[href]");
    if (!link) return false;
    event.preventDefault();
    if (event.isTrusted) tell("link", { url: link.href });
    return true;
  }
  document.addEventListener("auxclick", takeLink);
  document.addEventListener("click", (event) => {
    if (takeLink(event)) return;
    if (String(getSelection())) return;
    tell("choose", { id: idOf(event.target) });
  });
  document.addEventListener("dblclick", (event) => tell("activate", { id: idOf(event.target) }));
  document.addEventListener("contextmenu", (event) => tell("menu", { id: idOf(event.target), x: event.clientX, y: event.clientY, selected: String(getSelection()).length > 0 }));
  document.addEventListener("dragstart", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const send = (kind, data) => { event.preventDefault(); tell(kind, data); };
    if (event.altKey && event.key === "ArrowDown" || plain && event.key === "j") send("step", { by: 1 });
    else if (event.altKey && event.key === "ArrowUp" || plain && event.key === "k") send("step", { by: -1 });
    else if (plain && event.key === "PageDown") send("page", { by: 1 });
    else if (plain && event.key === "PageUp") send("page", { by: -1 });
    else if (plain && event.key === "Enter") send("activate", { id: chosen });
    else if (plain && event.key === "Escape") send("choose", { id: "" });
    else if (event.ctrlKey && event.key === "c" && !String(getSelection())) send("copy", {});
    else if (["ArrowDown", "ArrowUp", "Home", "End", " "].includes(event.key)) { led = true; tell("touched"); }
  });
  new ResizeObserver(measureSoon).observe(page);
  new ResizeObserver(measureSoon).observe(scroller);

  new QWebChannel(qt.webChannelTransport, (channel) => { bridge = channel.objects.bridge; tell("ready"); });
  return { apply, clear, mark, scrollTo, follow, empty, lead, theme, measure };
})();
globalThis.Verso = Verso;
