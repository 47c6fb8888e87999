// Choices that this browser keeps.

/** @param {string} name @param {string} fallback */
export function kept(name, fallback) {
  try {
    return localStorage.getItem(`trainmaster.${name}`) ?? fallback;
  } catch {
    return fallback;
  }
}

/** @param {string} name @param {string} value */
export function keep(name, value) {
  try {
    localStorage.setItem(`trainmaster.${name}`, value);
  } catch {
    // A browser that keeps nothing.
  }
}
