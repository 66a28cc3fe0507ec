import { useEffect, useState } from "preact/hooks";

/** A view and its settings, as the address has them after `#`, so that each view has a link. */
export interface Route {
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query) };
}

/** Returns the link of a view. Empty settings are left out. */
export function linkTo(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value] as [string, string]] : []));
  const search = new URLSearchParams(given).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${search === "" ? "" : `?${search}`}`;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => readRoute(location.hash));
  useEffect(() => {
    const onChange = (): void => setRoute(readRoute(location.hash));
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  return route;
}

/** Changes settings of the present view without a new entry in the browser's history. */
export function changeQuery(route: Route, change: Readonly<Record<string, string | undefined>>): void {
  const query = { ...Object.fromEntries(route.query), ...change };
  history.replaceState(null, "", linkTo(route.path, query));
  dispatchEvent(new HashChangeEvent("hashchange"));
}
