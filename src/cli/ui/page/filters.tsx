import type { JSX } from "preact";
import { capital } from "./format.ts";
import { Choice, Search } from "./parts.tsx";
import { changeQuery, type Route } from "./route.ts";

/** A word of the address that rows are filtered by. */
export interface Filter {
  readonly name: string;
  readonly of: readonly string[];
  /** A further value, and its words. */
  readonly besides?: readonly [value: string, words: string];
  /** The filter that depends on this one. */
  readonly clears?: string;
}

/** The search and the filters of a view's rows, which stand in its address. */
export function Filters({ route, filters }: { route: Route; filters: readonly Filter[] }): JSX.Element {
  const { q = "", ...chosen } = Object.fromEntries(route.query);
  return (
    <div class="filters">
      <Search value={q} onSearch={(words) => changeQuery(route, { q: words })} />
      {filters.map(({ name, clears, ...choice }) => (
        <Choice
          key={name}
          label={capital(name)}
          any={`every ${name}`}
          value={chosen[name] ?? ""}
          {...choice}
          onChoice={(value) => changeQuery(route, { [name]: value, ...(clears === undefined ? {} : { [clears]: "" }) })}
        />
      ))}
    </div>
  );
}
