// The theme that this browser keeps, before anything is painted. It is no module, since those run later.

try {
  document.documentElement.dataset.theme = localStorage.getItem("trainmaster.theme") ?? "auto";
} catch {
  // A browser that keeps nothing.
}
