"use strict";
// The report is complete without this script: it adds hovering, the choice of layers and colours, and the theme.
(() => {
  const root = document.documentElement;
  const tip = document.getElementById("tip");

  document.getElementById("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  });

  const show = (event) => {
    const target = event.target.closest("[data-tip]");
    if (!target) { tip.hidden = true; return; }
    tip.replaceChildren();
    if (target.dataset.picture !== undefined) {
      const picture = tip.appendChild(document.createElement("div"));
      picture.className = "picture";
      const style = getComputedStyle(picture);
      const columns = Number(style.getPropertyValue("--columns"));
      const rows = Number(style.getPropertyValue("--rows"));
      const index = Number(target.dataset.picture);
      const percent = (place, count) => `${100 * place / Math.max(1, count - 1)}%`;
      picture.style.backgroundPosition = `${percent(index % columns, columns)} ${percent(Math.floor(index / columns), rows)}`;
    }
    tip.append(target.dataset.tip);
    tip.hidden = false;
    const gap = 14;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + gap, innerWidth - width - 6);
    const below = event.clientY + gap + height < innerHeight;
    tip.style.left = `${Math.max(6, left)}px`;
    tip.style.top = `${Math.max(6, below ? event.clientY + gap : event.clientY - gap - height)}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  document.querySelectorAll("[data-choice]").forEach((select) => {
    const options = select.closest("figure").querySelectorAll(".option");
    select.addEventListener("change", () => {
      options.forEach((option, i) => { option.hidden = i !== Number(select.value); });
    });
    select.dispatchEvent(new Event("change"));
  });

  document.querySelectorAll("[data-colouring]").forEach((select) => {
    const figure = select.closest("figure");
    const legends = figure.querySelectorAll(".legend");
    select.addEventListener("change", () => {
      const chosen = Number(select.value);
      legends.forEach((legend, i) => { legend.hidden = i !== chosen; });
      figure.querySelectorAll("[data-g]").forEach((dot) => {
        dot.className = `dot c${Number(dot.dataset.g.split(" ")[chosen]) % 10}`;
      });
    });
    select.dispatchEvent(new Event("change"));
  });
})();
