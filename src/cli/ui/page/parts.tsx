import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Trouble } from "../../explain/model.ts";
import type { PodRow, ResourceUse } from "../model.ts";
import { amount } from "./format.ts";

/** A word with a coloured dot. The word alone tells the state, too. */
export function Badge({ tone, children }: { tone: PodRow["state"]; children: ComponentChildren }): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** A member's resource: used by this host, used by others, free. */
export function UseBar({ resource, allocatable, ours, others }: ResourceUse): JSX.Element {
  const part = (value: number): number => (allocatable > 0 ? Math.min(100, (value / allocatable) * 100) : 0);
  const oursPart = part(ours);
  const othersPart = Math.min(100 - oursPart, part(others));
  const free = Math.max(0, allocatable - ours - others);
  const text = `${amount(resource, ours)} of this host, ${amount(resource, others)} of others, ${amount(resource, free)} free`;
  return (
    <div class="use">
      <div class="use-names">
        <span>{resource}</span>
        <span class="use-free">
          <b>{amount(resource, free)}</b> free of {amount(resource, allocatable)}
        </span>
      </div>
      <div class="bar" role="img" aria-label={`${resource}: ${text}`} title={text}>
        <i class="ours" style={{ width: `${oursPart}%` }} />
        <i class="others" style={{ width: `${othersPart}%` }} />
      </div>
    </div>
  );
}

/** Searches the rows of a view by words. */
export function Search({ value, onSearch }: { value: string; onSearch: (words: string) => void }): JSX.Element {
  return (
    <input
      type="search"
      placeholder="Search"
      aria-label="Search"
      value={value}
      onInput={({ currentTarget }) => onSearch(currentTarget.value)}
    />
  );
}

/** A row of a table: a cell for each column, and what tells it from other rows. */
export interface PageRow {
  readonly key: string;
  readonly cells: readonly ComponentChildren[];
}

/** A table whose last column takes the room that is left. `isMuted`: the cells of that column are asides. */
export function Table({
  columns,
  rows,
  caption,
  isMuted = false,
  as = "list",
}: {
  columns: readonly string[];
  rows: readonly PageRow[];
  caption?: ComponentChildren;
  isMuted?: boolean;
  as?: string;
}): JSX.Element {
  const last = columns.length - 1;
  return (
    <table class={as}>
      {caption !== undefined && <caption>{caption}</caption>}
      <thead>
        <tr>
          {columns.map((column, index) => (
            <th key={column} class={index === last ? "wide" : undefined}>
              {column}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells }) => (
          <tr key={key}>
            {columns.map((column, index) => (
              <td key={column} class={isMuted && index === last ? "muted" : undefined}>
                {cells[index]}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Troubles with their remedies. */
export function Troubles({ of }: { of: readonly Trouble[] }): JSX.Element {
  return (
    <>
      {of.map(({ what, since, by, remedy }) => (
        <p class="trouble" key={what}>
          {what}
          {since !== undefined && <small> since {since}</small>}
          {by !== undefined && <small> says {by}</small>}
          {remedy !== undefined && <small> {remedy}</small>}
        </p>
      ))}
    </>
  );
}

/** A view without content, and what to do first. `isView`: its title is the view's only one. */
export function Empty({
  title,
  isView = false,
  children,
}: {
  title: string;
  isView?: boolean;
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="empty">
      {isView ? <h1>{title}</h1> : <h2>{title}</h2>}
      <div>{children}</div>
    </div>
  );
}

/** Returns the time, which moves on every few seconds, for ages. */
export function useNow(everyMs = 5_000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A reading of one of the server's documents: none yet, the document, or why there is none. */
export interface Reading<T> {
  readonly value?: T;
  readonly problem?: string;
}

/** Reads a document, and again when `again` changes and every few seconds. Shows the last one meanwhile. */
export function useReading<T>(url: string, again: unknown, everyMs = 5_000): Reading<T> {
  const [reading, setReading] = useState<Reading<T> & { readonly url?: string }>({});
  useEffect(() => {
    const stop = new AbortController();
    const read = async (): Promise<void> => {
      try {
        const response = await fetch(url, { signal: stop.signal });
        const body = await response.json();
        setReading(response.ok ? { url, value: body as T } : { url, problem: String(body.message) });
      } catch (error) {
        if (!stop.signal.aborted) setReading({ url, problem: `the page's server does not answer: ${String(error)}` });
      }
    };
    void read();
    const timer = setInterval(() => void read(), everyMs);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [url, again, everyMs]);
  return reading.url === url ? reading : {};
}
