"use strict";
document.documentElement.classList.add("scripted");
const pointed = document.querySelector(".pointed");
for (const map of document.querySelectorAll("svg.map")) {
  const whole = map.getAttribute("viewBox");
  map.addEventListener("pointerover", (event) => {
    const title = event.target.querySelector("title");
    pointed.textContent = title ? title.textContent : "\u00a0";
  });
  map.addEventListener("click", (event) => {
    const layer = event.target.closest(".layer");
    if (!layer) return;
    const alone = map.getAttribute("viewBox") === whole;
    map.setAttribute("viewBox", alone ? layer.dataset.box : whole);
  });
}
