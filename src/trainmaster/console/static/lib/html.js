// What every component needs: markup in template strings, and Preact's hooks.

import htm from "../vendor/htm.mjs";
import { Component, h } from "../vendor/preact.mjs";

export const html = htm.bind(h);
/**
 * Return a component that is drawn again only when one of its properties has changed.
 * @param {(props: any) => any} view
 */
export function memo(view) {
  return class extends Component {
    /** @param {any} next */
    shouldComponentUpdate(next) {
      const before = this.props;
      return Object.keys(next).some((name) => next[name] !== before[name]);
    }

    /** @param {any} props */
    render(props) {
      return view(props);
    }
  };
}

export { render } from "../vendor/preact.mjs";
export { useEffect, useMemo, useRef, useState } from "../vendor/hooks.mjs";
