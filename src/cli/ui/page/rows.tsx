import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** A column of a table. */
export interface Column<Row> {
  readonly name: string;
  /** CSS width. */
  readonly width: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Sorts by this value. */
  readonly by: (row: Row) => string | number;
}

const ROW_PX = 36;
const SPARE_ROWS = 12;
// Cards of a narrow window have a line for each column. All are of one height, since only visible ones are in the page.
const NARROW = "(max-width: 48rem)";
const LINE_PX = 26;
const CARD_PX = 24;

/** A table of any number of rows, of which only the visible ones are in the page. */
export function Rows<Row>(props: {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** The column that orders them, as an address names it: `Age`, or `-Age` for descending. */
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  /** CSS width below which the table scrolls sideways. */
  readonly minWidth?: string | undefined;
  /** Stands in place of rows. */
  readonly none: ComponentChildren;
}): JSX.Element {
  const { label, columns, rows, keyOf, sort, onSort, minWidth, none } = props;
  const box = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, height: 800, isNarrow: matchMedia(NARROW).matches });
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const narrow = matchMedia(NARROW);
    const read = (): void =>
      setView({ top: element.scrollTop, height: element.clientHeight, isNarrow: narrow.matches });
    const observer = new ResizeObserver(read);
    observer.observe(element);
    element.addEventListener("scroll", read, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", read);
    };
  }, []);
  const rowPx = view.isNarrow ? CARD_PX + columns.length * LINE_PX : ROW_PX;
  // A filter may leave fewer rows than were scrolled past.
  const first = Math.max(0, Math.min(Math.floor(view.top / rowPx), rows.length) - SPARE_ROWS);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / rowPx) + SPARE_ROWS);
  return (
    // The box scrolls by keyboard, so it takes the focus.
    <section class="rows" ref={box} tabIndex={0} aria-label={label}>
      <table aria-rowcount={rows.length + 1} style={{ "--least": minWidth, "--row": `${rowPx}px` }}>
        <colgroup>
          {columns.map(({ name, width }) => (
            <col key={name} style={{ width }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ name }) => {
              const order = sort === name ? "ascending" : sort === `-${name}` ? "descending" : "none";
              return (
                <th key={name} scope="col" aria-sort={order} title={name}>
                  <button type="button" onClick={() => onSort(order === "ascending" ? `-${name}` : name)}>
                    {name}
                    <span aria-hidden="true">{{ none: "", ascending: " ↑", descending: " ↓" }[order]}</span>
                  </button>
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          <Spacer px={first * rowPx} columns={columns.length} />
          {rows.slice(first, last).map((row, index) => (
            <tr key={keyOf(row)} aria-rowindex={first + index + 2}>
              {columns.map(({ name, cell }) => {
                const content = cell(row);
                return (
                  <td key={name} data-label={name} title={typeof content === "string" ? content : undefined}>
                    {content}
                  </td>
                );
              })}
            </tr>
          ))}
          <Spacer px={(rows.length - last) * rowPx} columns={columns.length} />
        </tbody>
      </table>
      {rows.length === 0 && (
        <p class="none" role="status">
          {none}
        </p>
      )}
    </section>
  );
}

/** Keeps the place of rows that are not in the page. */
function Spacer({ px, columns }: { px: number; columns: number }): JSX.Element | null {
  if (px <= 0) return null;
  return (
    <tr class="spacer">
      <td colSpan={columns} style={{ height: `${px}px` }} />
    </tr>
  );
}

/** Returns the rows in the order of a column, named as `sort` of `Rows`. */
export function ordered<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sort: string): readonly Row[] {
  const by = columns.find(({ name }) => name === sort.replace(/^-/, ""))?.by;
  if (by === undefined) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: by(row) }));
  keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0));
  return keyed.map(({ row }) => row);
}
