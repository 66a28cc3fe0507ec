import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Commands } from "./commands.ts";
import { capital } from "./format.ts";
import { wordsOf } from "./found.ts";
import { Head } from "./head.tsx";
import { Choice, NothingDelegated } from "./parts.tsx";
import { changeQuery, linkTo, type Route } from "./route.ts";
import { type Column, ordered, Rows } from "./rows.tsx";

/** A word of the address that rows are filtered by. */
export interface Filter<Row> {
  readonly name: string;
  readonly of: readonly string[];
  readonly has: (row: Row, value: string) => boolean;
  /** Words for each value, in place of itself. */
  readonly words?: readonly string[];
  /** The filter that depends on this one. */
  readonly clears?: string;
}

/** A view of many rows, filtered, searched and sorted as the address says. */
export function Listing<Row>(props: {
  readonly route: Route;
  readonly title: string;
  readonly about: (shown: number) => ComponentChildren;
  readonly commands: Commands;
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly columns: readonly Column<Row>[];
  readonly filters: readonly Filter<Row>[];
  /** The text in which words are searched. */
  readonly textOf: (row: Row) => string;
  /** The order where the address names none. */
  readonly sort?: string;
  readonly minWidth?: string;
  /** Words for no row that is like what the address says. */
  readonly none: string;
  /** Stands between the head and the rows. */
  readonly notes?: ComponentChildren;
  /** The first steps where there are no rows at all. */
  readonly nothing?: { readonly title: string; readonly steps: string };
}): JSX.Element {
  const { route, title, about, commands, rows, keyOf, columns, filters, textOf, minWidth, none, notes, nothing } =
    props;
  const { q = "", sort = props.sort ?? "", ...chosen } = Object.fromEntries(route.query);
  const shown = useMemo(() => {
    const words = wordsOf(q);
    const asked = filters.filter(({ name }) => chosen[name]);
    const matching = rows.filter((row) => {
      if (!asked.every(({ name, has }) => has(row, chosen[name] ?? ""))) return false;
      const text = words.length === 0 ? "" : textOf(row).toLowerCase();
      return words.every((word) => text.includes(word));
    });
    return ordered(matching, columns, sort);
  }, [rows, columns, route]);
  return (
    <div class="fill">
      <Head title={title} about={<span aria-live="polite">{about(shown.length)}</span>} commands={commands}>
        <div class="filters">
          <input
            type="search"
            placeholder="Search"
            aria-label="Search"
            value={q}
            onInput={({ currentTarget }) => changeQuery(route, { q: currentTarget.value })}
          />
          {filters.map(({ name, of, words, clears }) => (
            <Choice
              key={name}
              label={capital(name)}
              any={`every ${name}`}
              value={chosen[name] ?? ""}
              of={of}
              words={words}
              onChoice={(value) =>
                changeQuery(route, { ...(clears === undefined ? {} : { [clears]: "" }), [name]: value })
              }
            />
          ))}
        </div>
      </Head>
      {notes}
      {nothing !== undefined && rows.length === 0 ? (
        <NothingDelegated {...nothing} />
      ) : (
        <Rows
          label={title}
          columns={columns}
          rows={shown}
          keyOf={keyOf}
          sort={sort}
          onSort={(order) => changeQuery(route, { sort: order })}
          minWidth={minWidth}
          none={
            <>
              {none} <a href={linkTo(route.path)}>Show all</a>
            </>
          }
        />
      )}
    </div>
  );
}
