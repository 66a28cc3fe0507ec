import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { age, amountText } from "../../../api/wording.ts";
import type { ToldEvent } from "../../explain/events.ts";
import type { Trouble } from "../../explain/model.ts";
import { saidText } from "../../explain/text.ts";
import type { PodRow, ResourceUse } from "../model.ts";
import { type Reading, readDocument } from "./document.ts";
import { filledColumns, type PageRow } from "./filled-columns.ts";
import { capital, localTime, zonedTime } from "./format.ts";
import { whyLastKnown, whyOld } from "./freshness.ts";
import { useLive } from "./live.ts";

/** A word with a coloured dot. The word alone tells the state, too. */
export function Badge({ tone, children }: { tone: PodRow["state"]; children: ComponentChildren }): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** Elements with commas between them, each with its key. */
export function Listed({ items }: { items: readonly (readonly [key: string, element: JSX.Element])[] }): JSX.Element {
  return (
    <>
      {items.map(([key, element], index) => (
        <span key={key}>
          {index > 0 && ", "}
          {element}
        </span>
      ))}
    </>
  );
}

/** The readiness of a member or node, by the status of its condition. */
export function ReadyBadge({ ready, isCordoned }: { ready: string; isCordoned: boolean }): JSX.Element {
  if (ready !== "True") return <Badge tone="failed">{ready === "False" ? "Not ready" : "Unknown"}</Badge>;
  return <Badge tone={isCordoned ? "waiting" : "running"}>{isCordoned ? "Ready, cordoned" : "Ready"}</Badge>;
}

/** A member's resource: used by this host, used by others, free. */
export function UseBar({ resource, allocatable, ours, others }: ResourceUse): JSX.Element {
  const part = (value: number): number => (allocatable > 0 ? Math.min(100, (value / allocatable) * 100) : 0);
  const oursPart = part(ours);
  const othersPart = Math.min(100 - oursPart, part(others));
  const free = Math.max(0, allocatable - ours - others);
  const text = `${amountText(resource, ours)} of this host, ${amountText(resource, others)} of others, ${amountText(resource, free)} free`;
  return (
    <div class="use">
      <div class="use-names">
        <span>{resource}</span>
        <span class="use-free">
          <b>{amountText(resource, free)}</b> free of {amountText(resource, allocatable)}
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

/** Chooses one of some values, or any. `besides`: a further value, and its words. */
export function Choice({
  label,
  any,
  value,
  of,
  besides,
  onChoice,
}: {
  label: string;
  any?: string;
  value: string;
  of: readonly string[];
  besides?: readonly [value: string, words: string];
  onChoice: (value: string) => void;
}): JSX.Element {
  // Preact compares no elements that stay the same: there may be thousands.
  const options = useMemo(() => of.map((each) => <option key={each}>{each}</option>), [of.join("\n")]);
  return (
    <select aria-label={label} value={value} onChange={({ currentTarget }) => onChoice(currentTarget.value)}>
      {any !== undefined && <option value="">{any}</option>}
      {options}
      {besides !== undefined && <option value={besides[0]}>{besides[1]}</option>}
    </select>
  );
}

/**
 * A table without the columns of which all cells are empty. Its last column takes the room that is left. `isMuted`: the cells of that
 * column are asides. `none`: words for no rows.
 */
export function Table({
  columns,
  rows,
  caption,
  isMuted = false,
  as = "list",
  none = "None.",
}: {
  columns: readonly string[];
  rows: readonly PageRow[];
  caption?: ComponentChildren;
  isMuted?: boolean;
  as?: string;
  none?: string;
}): JSX.Element {
  const last = columns.length - 1;
  if (rows.length === 0) {
    return (
      <>
        {caption !== undefined && <p class="muted">{caption}</p>}
        <p class="muted">{none}</p>
      </>
    );
  }
  const filled = filledColumns(columns, rows);
  return (
    <table class={as}>
      {caption !== undefined && <caption>{caption}</caption>}
      <thead>
        <tr>
          {filled.map((index) => (
            <th key={index} class={index === last ? "wide" : undefined}>
              {columns[index]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells }) => (
          <tr key={key}>
            {filled.map((index) => (
              <td key={index} data-label={columns[index]} class={isMuted && index === last ? "muted" : undefined}>
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
      {of.map((trouble) => (
        <p class="trouble" key={trouble.what}>
          {trouble.what}
          <small>{saidText(trouble)}</small>
          {trouble.remedy !== undefined && <small> {trouble.remedy}</small>}
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

/** The first steps where nothing is delegated. */
export function NothingDelegated({ title, steps }: { title: string; steps: string }): JSX.Element {
  return (
    <Empty title={title}>
      <p>{steps}</p>
      <pre>
        kubectl label namespace shop legation.dev/delegation=annotated{"\n"}
        kubectl -n shop annotate deployment web legation.dev/delegate=true
      </pre>
    </Empty>
  );
}

/** A moment as local time, in full as its tooltip and on demand. */
export function Time({ at, isZoned = false }: { at: string; isZoned?: boolean }): JSX.Element {
  return (
    <time dateTime={at} title={zonedTime(at)}>
      {isZoned ? zonedTime(at) : localTime(at, Date.now())}
    </time>
  );
}

/** Events, each with where it was told if some have that. */
export function Events({ of }: { of: readonly (ToldEvent & { readonly where?: string })[] }): JSX.Element {
  return (
    <Table
      columns={["Time", "Where", "Type", "Reason", "Message"]}
      rows={of.map(({ at, where = "", type, reason, message }) => ({
        key: at + where + reason + message,
        cells: [<Time at={at} key="time" />, where, type, reason, message],
      }))}
    />
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

/** Reads a document, and again when `again` changes and every few seconds. Keeps the last one meanwhile. */
export function useReading<T>(url: string, again: unknown, everyMs = 5_000): Reading<T> {
  const [reading, setReading] = useState<Reading<T> & { readonly url?: string }>({});
  const known = useRef(reading);
  known.current = reading.url === url ? reading : {};
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      const { url: _, ...before } = known.current;
      const next = await readDocument<T>(url, before, stop.signal);
      if (stop.signal.aborted) return;
      setReading({ ...next, url });
      timer = setTimeout(() => void read(), everyMs);
    };
    void read();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [url, again, everyMs]);
  return known.current;
}

/** A document's content, or what keeps it away: never nothing. `what` names it in sentences. `isView`: it is the whole view. */
export function Loaded<T>({
  reading: { value, readAt, problem },
  what,
  isView = false,
  children,
}: {
  reading: Reading<T>;
  what: string;
  isView?: boolean;
  children: (value: T) => ComponentChildren;
}): JSX.Element {
  const now = useNow();
  if (value === undefined) {
    return (
      <Empty isView={isView} title={problem === undefined ? `Loading ${what}…` : `${capital(what)} cannot be shown`}>
        {problem}
      </Empty>
    );
  }
  return (
    <>
      {problem !== undefined && (
        <p class="trouble" role="status">
          What is shown was read {age(now - (readAt ?? now))} ago: {problem}
        </p>
      )}
      {problem === undefined ? children(value) : <div class="loaded old">{children(value)}</div>}
    </>
  );
}

/** A list that the live connection has not delivered yet, and why if it takes long. */
export function Awaited({ what }: { what: string }): JSX.Element {
  const why = whyOld(useLive(), useNow(1_000));
  return (
    <Empty isView title={why === undefined ? `Loading ${what}…` : `${capital(what)} cannot be shown yet`}>
      {why}
    </Empty>
  );
}

/** A pod's status. Of a pod in a lost member it is what was last known. */
export function Status({ row }: { row: PodRow }): JSX.Element {
  const { members } = useLive();
  const lost = whyLastKnown(row, members);
  // A narrow column cuts the status, too.
  const words = <span title={[lost, row.why].filter(Boolean).join("; ") || row.status}>{row.status}</span>;
  if (lost === undefined) return <Badge tone={row.state}>{words}</Badge>;
  return (
    <span class="badge lost">
      {words} <small>old</small>
    </span>
  );
}
