"use strict";
document.querySelectorAll(".animation").forEach((animation) => {
  const all = (what) => [...animation.querySelectorAll(what)], one = (what) => animation.querySelector(what);
  const run = JSON.parse(animation.dataset.run);
  const lines = run.lines.map((line) => line.map((steps) => {
    let sum = 0;
    return steps.map((step) => step === null ? NaN : (sum += step));
  }));
  const last = lines[0][0].length - 1, turn = 2e4 * Math.PI;
  const trails = all(".live .trail"), bases = all(".live .base"), offs = all(".off");
  const slider = one("[type=range]"), button = one("button"), clock = one(".clock");
  const speed = one("select"), magnify = one("[type=checkbox]");
  let moment = 0, playing = false, before = 0;

  // Errors of a pose from the reference at the same time, the yaw within half a turn.
  const off = (pose, wanted) => pose.map((value, axis) => {
    const error = value - wanted[axis];
    return axis < 2 ? error : error - turn * Math.round(error / turn);
  });
  const shown = (pose, wanted) => {
    if (!magnify.checked) return pose;
    return off(pose, wanted).map((error, axis) => wanted[axis] + run.magnified * error);
  };
  const sample = (line, k) => line.map((axis) => axis[k]);
  const between = (line, at) => {
    const k = Math.min(Math.floor(at), last - 1), part = at - k;
    return line.map((axis) => axis[k] + part * (axis[k + 1] - axis[k]));
  };
  const sound = (pose) => pose.every(Number.isFinite);

  const trail = (line, at, end) => {
    const points = [];
    let pen = "M";
    for (let k = 0; k <= at; k += 1) {
      const pose = shown(sample(line, k), sample(lines[0], k));
      if (sound(pose)) points.push(pen + Math.round(pose[0]) + " " + Math.round(-pose[1]));
      pen = sound(pose) ? "L" : "M";
    }
    if (sound(end)) points.push(pen + Math.round(end[0]) + " " + Math.round(-end[1]));
    return points.join("");
  };

  const show = (time) => {
    moment = Math.max(0, Math.min(run.end, time));
    animation.classList.add("moving");
    const at = moment / run.end * last, wanted = between(lines[0], at);
    lines.forEach((line, n) => {
      const pose = between(line, at), seen = shown(pose, wanted), error = off(pose, wanted);
      if (n) trails[n].setAttribute("d", trail(line, at, seen));
      bases[n].setAttribute("visibility", sound(seen) ? "visible" : "hidden");
      if (sound(seen)) {
        const [x, y, yaw] = [seen[0], -seen[1], -seen[2] * 18e-3 / Math.PI].map((value) => value.toFixed(2));
        bases[n].setAttribute("transform", `translate(${x} ${y}) rotate(${yaw})`);
      }
      if (n) {
        offs[n - 1].textContent = sound(pose)
          ? `${(Math.hypot(error[0], error[1]) / 10).toFixed(1)} mm, ${(Math.abs(error[2]) / 10).toFixed(1)} mrad`
          : "not measured";
      }
    });
    slider.value = moment;
    clock.textContent = `${moment.toFixed(2)} s`;
    slider.setAttribute("aria-valuetext", `${moment.toFixed(2)} of ${run.end.toFixed(2)} seconds`);
  };
  const move = (on) => {
    playing = on;
    button.textContent = on ? "Pause" : "Play";
    if (!on) return;
    if (moment >= run.end) show(0);
    before = 0;
    requestAnimationFrame(tick);
  };
  const tick = (now) => {
    if (!playing) return;
    const passed = before ? Math.min(0.1, (now - before) / 1000) : 0;
    before = now;
    show(moment + passed * speed.value);
    if (moment >= run.end) move(false); else requestAnimationFrame(tick);
  };
  // "#t=7.5" in the address shows that moment.
  const jump = () => {
    const asked = /[#&]t=(\d+\.?\d*)/.exec(location.hash);
    if (asked) { move(false); show(Number(asked[1])); }
    return Boolean(asked);
  };

  one(".controls").hidden = false;
  button.addEventListener("click", () => move(!playing));
  slider.addEventListener("input", () => { move(false); show(Number(slider.value)); });
  magnify.addEventListener("change", () => show(moment));
  addEventListener("hashchange", jump);
  if (jump() || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  new IntersectionObserver((seen, eye) => {
    if (seen.some((entry) => entry.isIntersecting)) { eye.disconnect(); if (!playing && !moment) move(true); }
  }, { threshold: 0.6 }).observe(one(".ground"));
});
