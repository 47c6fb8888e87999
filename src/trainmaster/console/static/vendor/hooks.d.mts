// Types of hooks.mjs, as far as the page uses it.
export function useEffect(effect: () => void | (() => void), inputs?: unknown[]): void;
export function useMemo<T>(factory: () => T, inputs: unknown[]): T;
export function useRef<T>(value: T): { current: T };
export function useState<T>(value: T | (() => T)): [T, (value: T | ((before: T) => T)) => void];
