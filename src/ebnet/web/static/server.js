// Answers from the server that shows the page.

/** What is asked for, or a sentence for people. */
const asked = async (...request) => {
  let reply;
  try {
    reply = await fetch(...request);
  } catch {
    throw new Error("The server does not answer.");
  }
  const said = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Error(said.error ?? `The server answers ${reply.status}.`);
  return said;
};

export const network = async () => {
  const said = await asked("network");
  return { ...said, where: said.local ? "Images stay on this machine: they go to the server that shows this page, and nowhere else." : "" };
};

/** An image file as it is, a canvas or the camera's image as PNG. */
const fileOf = (image) => {
  if (image instanceof Blob) return image;
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [image.videoWidth ?? image.width, image.videoHeight ?? image.height];
  sheet.getContext("2d").drawImage(image, 0, 0);
  return new Promise((resolve) => sheet.toBlob(resolve, "image/png"));
};

export const classify = async (image, invert) => {
  return asked(`predict?invert=${invert}`, { method: "POST", body: await fileOf(image) });
};
