// Keeps the page's files, so that it opens without a network once it has been seen. What the host has now is preferred.
const KEPT = "ebnet";
const FILES = ["./", "page.css", "page.js", "answers.js", "ebnet.js", "net.ebn"];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(FILES)).then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  event.respondWith((async () => {
    const kept = await caches.open(KEPT);
    try {
      const reply = await fetch(event.request);
      if (reply.ok) await kept.put(event.request, reply.clone());
      return reply;
    } catch (fault) {
      const reply = await kept.match(event.request, { ignoreSearch: true });
      if (reply) return reply;
      throw fault;
    }
  })());
});
