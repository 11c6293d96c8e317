// Makes the page answer: the theme, sorting, saving pictures. Without it everything can still be read. Loads nothing, sends nothing.
"use strict";
(() => {
  const root = document.documentElement;

  // The theme: the system's, light or dark; remembered where the browser allows it for files.
  const themes = ["system", "light", "dark"];
  const toggle = document.getElementById("theme");
  const remembered = () => { try { return localStorage.getItem("weft-theme"); } catch { return null; } };
  const remember = (name) => { try { localStorage.setItem("weft-theme", name); } catch { /* not for this file */ } };
  const show = (name) => {
    if (name === "system") { root.removeAttribute("data-theme"); } else { root.setAttribute("data-theme", name); }
    toggle.textContent = "Theme: " + name;
    toggle.dataset.now = name;
  };
  show(themes.includes(remembered()) ? remembered() : "system");
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const next = themes[(themes.indexOf(toggle.dataset.now) + 1) % themes.length];
    remember(next);
    show(next);
  });

  // Sorting: numbers by their value, then texts; a second press turns the order round. Equal rows keep their order.
  const compare = (one, other) => {
    const [first, second] = [one.dataset.v, other.dataset.v];
    if (first !== undefined && second !== undefined) { return Number(first) - Number(second); }
    if (first !== undefined) { return -1; }
    if (second !== undefined) { return 1; }
    return one.textContent.localeCompare(other.textContent, undefined, { numeric: true });
  };
  const sort = (head) => {
    const table = head.closest("table");
    const column = [...head.parentNode.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) { other.removeAttribute("aria-sort"); }
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((one, other) => {
      const order = compare(one.cells[column], other.cells[column]);
      return down ? -order : order;
    });
    body.append(...rows);
  };
  for (const button of document.querySelectorAll("table.sortable thead button")) {
    button.addEventListener("click", () => sort(button.parentNode));
  }

  // Saving: the wide picture with the colours it has now, written into its elements, so that it looks the same anywhere.
  const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-linejoin", "stroke-linecap", "paint-order",
    "font-family", "font-size", "font-weight"];
  const fixed = (figure) => {
    const picture = figure.querySelector("svg.wide");
    const copy = picture.cloneNode(true);
    const originals = picture.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((element, place) => {
      const style = getComputedStyle(originals[place]);
      for (const name of kept) { element.setAttribute(name, style.getPropertyValue(name)); }
      element.removeAttribute("class");
    });
    const [, , width, height] = picture.getAttribute("viewBox").split(" ").map(Number);
    const space = "http://www.w3.org/2000/svg";
    const paper = document.createElementNS(space, "rect");
    const back = getComputedStyle(picture).getPropertyValue("--paper").trim();
    const title = document.createElementNS(space, "text");
    const ink = getComputedStyle(picture).getPropertyValue("--ink").trim();
    for (const [name, value] of [["x", 0], ["y", -30], ["width", width], ["height", height + 30], ["fill", back]]) {
      paper.setAttribute(name, value);
    }
    for (const [name, value] of [["x", 8], ["y", -10], ["fill", ink], ["font-size", 14], ["font-weight", 600],
      ["font-family", getComputedStyle(picture).fontFamily]]) {
      title.setAttribute(name, value);
    }
    title.textContent = figure.querySelector("h3").textContent;
    copy.prepend(paper, title);
    copy.removeAttribute("class");
    copy.setAttribute("xmlns", space);
    copy.setAttribute("viewBox", [0, -30, width, height + 30].join(" "));
    copy.setAttribute("width", width);
    copy.setAttribute("height", height + 30);
    return { text: new XMLSerializer().serializeToString(copy), width, height: height + 30 };
  };
  const offer = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  // Resolves to a PNG of three times the size, enough for paper.
  const painted = (picture) => new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = picture.width * 3;
      canvas.height = picture.height * 3;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => { if (blob) { resolve(blob); } else { reject(new Error("no PNG")); } }, "image/png");
    };
    image.onerror = () => reject(new Error("the picture could not be painted"));
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(picture.text);
  });
  const save = async (figure, kind) => {
    const picture = fixed(figure);
    const blob = kind === "png" ? await painted(picture) : new Blob([picture.text], { type: "image/svg+xml" });
    offer(blob, figure.id + "." + kind);
    figure.dataset.saved = kind + " " + blob.size;
  };
  for (const tools of document.querySelectorAll(".tools")) {
    tools.hidden = false;
    for (const button of tools.querySelectorAll("[data-save]")) {
      button.addEventListener("click", () => { save(button.closest("figure"), button.dataset.save); });
    }
  }
})();
