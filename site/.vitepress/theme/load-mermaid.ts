import type { Mermaid } from "mermaid";
// Served as it is: bundling it anew would take minutes.
import address from "mermaid/dist/mermaid.min.js?url";

let loading: Promise<Mermaid> | undefined;

/** Loads Mermaid from this site, once, on the first page with a diagram. */
export function loadMermaid(): Promise<Mermaid> {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onerror = () => reject(new Error(`${address} cannot be loaded`));
    script.onload = () => resolve((globalThis as unknown as { mermaid: Mermaid }).mermaid);
    document.head.append(script);
  });
  return loading;
}
