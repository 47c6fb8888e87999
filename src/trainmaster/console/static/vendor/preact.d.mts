// Types of preact.mjs, as far as the page uses it.
export function h(type: any, props: any, ...children: any[]): any;
export class Component {
  props: any;
}
export function render(node: any, parent: Element): void;
