// The page: draw, drop or film, and see what the network says. answers.js knows who is asked: the server that shows the
// page (server.js), or the network inside the page (browser.js).
import { classify as ask, network as describe } from "./answers.js";

{
  const $ = (id) => document.getElementById(id);
  const pad = $("pad");
  const ink = pad.getContext("2d", { willReadFrequently: true });
  let drawing = false;
  let drawn = false;
  let latest = 0; // answers to older requests are not shown
  let timer = 0;

  $("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  });

  describe().then((network) => {
    const experts = network.experts > 1 ? `${network.experts} experts per layer` : "one expert";
    $("network").textContent =
      `${network.arch}, ${experts}, ${(network.bytes / 1000).toFixed(0)} kB, ${network.classes.length} classes, ${network.isa} kernels`;
    const grey = network.channels === 1;
    pad.hidden = !grey;
    $("invert-label").hidden = !grey;
    $("experts").hidden = network.experts < 2;
    $("local").hidden = !network.where;
    $("local").textContent = network.where;
    $("film").hidden = !navigator.mediaDevices?.getUserMedia;
    $("hint").classList.toggle("on-black", grey);
    $("hint").textContent = grey ? "Draw here, or drop an image" : "Drop an image here";
    document.body.dataset.ready = "";
  }).catch((fault) => fail(fault.message));

  const place = (event) => {
    const box = pad.getBoundingClientRect();
    return [(event.clientX - box.left) * pad.width / box.width, (event.clientY - box.top) * pad.height / box.height];
  };
  const line = (event) => {
    ink.lineTo(...place(event));
    ink.stroke();
  };
  pad.addEventListener("pointerdown", (event) => {
    drawing = drawn = true;
    pad.setPointerCapture(event.pointerId);
    $("hint").hidden = true;
    Object.assign(ink, { lineWidth: 22, lineCap: "round", lineJoin: "round", strokeStyle: "#fff" });
    ink.beginPath();
    ink.moveTo(...place(event));
    line(event);
  });
  pad.addEventListener("pointermove", (event) => {
    if (!drawing) return;
    line(event);
    clearTimeout(timer);
    timer = setTimeout(classifyDrawing, 120);
  });
  ["pointerup", "pointercancel"].forEach((name) => pad.addEventListener(name, () => {
    if (!drawing) return;
    drawing = false;
    clearTimeout(timer);
    classifyDrawing();
  }));

  $("clear").addEventListener("click", () => {
    latest += 1;
    stopCamera();
    drawn = false;
    clearTimeout(timer);
    ink.clearRect(0, 0, pad.width, pad.height);
    $("shown").hidden = true;
    $("hint").hidden = false;
    $("answer").hidden = $("error").hidden = true;
    $("waiting").hidden = false;
  });

  // As MNIST's digits were made: the ink scaled to 20 of 28 pixels, its centre of mass in the middle.
  const centred = () => {
    const { width, height } = pad;
    const pixels = ink.getImageData(0, 0, width, height).data;
    let [left, top, right, bottom, mass, x, y] = [width, height, -1, -1, 0, 0, 0];
    for (let row = 0; row < height; row += 1) {
      for (let column = 0; column < width; column += 1) {
        const weight = pixels[4 * (row * width + column) + 3];
        if (!weight) continue;
        left = Math.min(left, column);
        right = Math.max(right, column);
        top = Math.min(top, row);
        bottom = Math.max(bottom, row);
        mass += weight;
        x += weight * column;
        y += weight * row;
      }
    }
    if (!mass) return null;
    const side = 112;
    const scale = side * 20 / 28 / Math.max(right - left + 1, bottom - top + 1);
    const sheet = document.createElement("canvas");
    sheet.width = sheet.height = side;
    const context = sheet.getContext("2d");
    context.fillRect(0, 0, side, side);
    context.imageSmoothingQuality = "high";
    context.drawImage(pad, side / 2 - scale * x / mass, side / 2 - scale * y / mass, scale * width, scale * height);
    return sheet;
  };
  const classifyDrawing = () => {
    const sheet = drawn && centred();
    if (sheet) classify(sheet, false);
  };

  const take = (file) => {
    if (!file) return;
    stopCamera();
    const shown = $("shown");
    if (shown.src) URL.revokeObjectURL(shown.src);
    shown.src = URL.createObjectURL(file);
    shown.hidden = false;
    $("hint").hidden = true;
    taken = file;
    classify(file, $("invert").checked);
  };
  let taken = null;
  $("file").addEventListener("change", (event) => {
    take(event.target.files[0]);
    event.target.value = "";
  });
  $("invert").addEventListener("change", () => {
    if (taken && !$("shown").hidden) classify(taken, $("invert").checked);
  });
  const drop = $("drop");
  addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  addEventListener("dragleave", () => drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });

  // The camera: one image after the other, each asked about when the one before was answered.
  const camera = $("camera");
  const stopCamera = () => {
    for (const track of camera.srcObject?.getTracks() ?? []) track.stop();
    camera.srcObject = null;
    camera.hidden = true;
  };
  $("film").addEventListener("click", async () => {
    if (camera.srcObject) return stopCamera();
    try {
      camera.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
      await camera.play();
    } catch (fault) {
      stopCamera();
      return fail(`The camera cannot be used: ${fault.message}`);
    }
    camera.hidden = false;
    $("hint").hidden = $("shown").hidden = true;
    while (camera.srcObject) {
      await classify(camera, $("invert").checked);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });

  const classify = async (image, invert) => {
    const mine = latest += 1;
    try {
      const answer = await ask(image, invert);
      if (mine === latest) show(answer);
    } catch (fault) {
      if (mine === latest) fail(fault.message);
    }
  };

  const fail = (message) => {
    $("error").textContent = message;
    $("error").hidden = false;
    $("answer").hidden = $("waiting").hidden = true;
  };

  const element = (kind, className, text = "") => {
    const made = document.createElement(kind);
    made.className = className;
    made.textContent = text;
    return made;
  };

  const show = (answer) => {
    $("error").hidden = $("waiting").hidden = true;
    $("answer").hidden = false;
    $("label").textContent = answer.label;
    $("latency").textContent = `${answer.milliseconds.toFixed(2)} ms in the engine`;
    const best = answer.probabilities.map((value, i) => [value, i]);
    if (best.length > 10) best.sort((a, b) => b[0] - a[0]);
    $("probabilities").replaceChildren(...best.slice(0, 10).flatMap(([value, i]) => {
      const bar = element("div", "bar");
      bar.appendChild(element("i", "")).style.width = `${100 * value}%`;
      return [element("div", "name", answer.classes[i]), bar, element("div", "number", `${(100 * value).toFixed(1)}%`)];
    }));
    $("path").replaceChildren(...answer.path.flatMap((layer) => {
      const choices = element("div", "choices");
      for (let e = 0; e < layer.experts; e += 1) {
        choices.append(element("i", e === layer.chosen ? "chosen" : "", String(e)));
      }
      return [element("div", "", `layer ${layer.name}`), choices];
    }));
  };
}
