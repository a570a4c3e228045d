"use strict";
const byId = (id) => document.getElementById(id);
const put = (id, text) => {
  byId(id).textContent = text;
};
const AXES = ["x", "y", "yaw"];

const fill = (id, rows, empty, marked) => {
  const body = byId(id).tBodies[0];
  body.replaceChildren(...rows.map((row) => {
    const line = document.createElement("tr");
    row.forEach((text, k) => {
      const cell = document.createElement(k ? "td" : "th");
      if (!k) cell.scope = "row";
      cell.textContent = text;
      if (marked && k === 1) cell.className = text;
      if (marked && k === 2) cell.className = "words";
      line.append(cell);
    });
    return line;
  }));
  byId(id).hidden = !rows.length;
  byId(empty).hidden = rows.length > 0;
};

const drawPath = (path, pose, desired) => {
  const svg = byId("ground");
  const [grid, base] = svg.querySelectorAll("path");
  base.setAttribute("visibility", pose ? "visible" : "hidden");
  if (!pose) return;
  const points = [...path, pose], all = [...points, ...desired];
  const xs = all.map((p) => p[0]), ys = all.map((p) => -p[1]);
  const [left, right] = [Math.min(...xs), Math.max(...xs)], [top, low] = [Math.min(...ys), Math.max(...ys)];
  const size = Math.max(right - left, low - top, 1) + 0.8;
  const x0 = (left + right - size) / 2, y0 = (top + low - size) / 2;
  const step = [0.25, 0.5, 1, 2, 5, 10, 50].find((s) => size / s <= 10) || 100;
  let lines = "";
  for (let x = Math.ceil(x0 / step) * step; x < x0 + size; x += step) lines += `M${x} ${y0}v${size}`;
  for (let y = Math.ceil(y0 / step) * step; y < y0 + size; y += step) lines += `M${x0} ${y}h${size}`;
  svg.setAttribute("viewBox", `${x0} ${y0} ${size} ${size}`);
  grid.setAttribute("d", lines);
  [points, desired].forEach((line, k) => {
    svg.querySelectorAll("polyline")[k].setAttribute("points", line.map((p) => `${p[0]},${-p[1]}`).join(" "));
  });
  base.setAttribute("transform", `translate(${pose[0]} ${-pose[1]}) rotate(${(-180 / Math.PI) * pose[2]})`);
  put("scale", `Seen from above, x to the right; grid of ${step} m.${desired.length ? " Dashed: the desired path." : ""}`);
};

const drawErrors = (errors) => {
  const largest = Math.max(...errors.map((e) => e[1]), 0.1);
  const points = errors.map((e) => `${(600 * (e[0] + 60)) / 60},${300 - (280 * e[1]) / largest}`);
  byId("errors").querySelector("polyline").setAttribute("points", points.join(" "));
  if (errors.length) {
    const turned = Math.max(...errors.map((e) => Math.abs(e[2])));
    put("largest", `Distance from the desired position, 0 to ${largest.toFixed(2)} mm, from 60 s ago until now; yaw up to ${turned.toFixed(2)} mrad.`);
  } else put("largest", "No trajectory ran in the last minute.");
};

const show = (seen) => {
  put("robot", seen.robot);
  put("missing", seen.missing);
  byId("missing").hidden = !seen.missing;
  document.querySelector(".tiles").classList.toggle("old", seen.pose_is_old);
  AXES.forEach((axis, k) => {
    const unit = k < 2 ? "m" : "rad";
    put(`pose-${axis}`, seen.pose ? `${seen.pose[k].toFixed(3)} ${unit}` : "–");
    put(`error-${axis}`, seen.error ? `${seen.error[k].toFixed(2)} m${unit}` : "–");
    put(`delay-${axis}`, seen.delays[axis] || "not known yet");
  });
  put("tracker", seen.tracker);
  put("response", seen.response);
  byId("warnings").hidden = !seen.warnings.length;
  byId("warnings").querySelector("ul").replaceChildren(...seen.warnings.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  drawPath(seen.path, seen.pose, seen.desired);
  drawErrors(seen.errors);
  fill("verdicts", seen.driver, "no-driver", true);
  fill("temperatures", seen.temperatures, "no-heat");
};

const source = new EventSource("live");
source.onmessage = (event) => show(JSON.parse(event.data));
source.onerror = () => {
  put("missing", "The command youbot watch has ended: the page shows what was last heard. It goes on when the command runs again.");
  byId("missing").hidden = false;
};
