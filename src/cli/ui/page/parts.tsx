import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { age } from "../../../api/wording.ts";
import type { Trouble } from "../../explain/model.ts";
import { saidText } from "../../explain/text.ts";
import type { PodRow } from "../model.ts";
import { type Reading, readDocument } from "./document.ts";
import { capital, localTime, zonedTime } from "./format.ts";
import { whyLastKnown, whyOld } from "./freshness.ts";
import { useLive } from "./live.ts";

/** A word with a coloured dot. The word alone tells the state, too. */
export function Badge({ tone, children }: { tone: PodRow["state"]; children: ComponentChildren }): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** Returns elements with commas between them. */
export function listed(elements: readonly JSX.Element[]): ComponentChildren[] {
  return elements.flatMap((element, index) => (index === 0 ? [element] : [", ", element]));
}

/** The readiness of a member or node, by the status of its condition. */
export function ReadyBadge({ ready, isCordoned }: { ready: string; isCordoned: boolean }): JSX.Element {
  if (ready !== "True") return <Badge tone="failed">{ready === "False" ? "Not ready" : "Unknown"}</Badge>;
  return <Badge tone={isCordoned ? "waiting" : "running"}>{isCordoned ? "Ready, cordoned" : "Ready"}</Badge>;
}

/** Chooses one of some values, or any. `words`: words for each value, in place of itself. */
export function Choice({
  label,
  any,
  value,
  of,
  words = of,
  onChoice,
}: {
  label: string;
  any?: string;
  value: string;
  of: readonly string[];
  words?: readonly string[] | undefined;
  onChoice: (value: string) => void;
}): JSX.Element {
  // Preact compares no elements that stay the same: there may be thousands.
  const options = useMemo(
    () => words.map((each, index) => <option value={of[index]}>{each}</option>),
    [words.join("\n")],
  );
  return (
    <select aria-label={label} value={value} onChange={({ currentTarget }) => onChoice(currentTarget.value)}>
      {any !== undefined && <option value="">{any}</option>}
      {options}
    </select>
  );
}

/** A box to check, with its words. */
export function Check(props: {
  words: string;
  isChecked: boolean;
  onCheck: (isChecked: boolean) => void;
}): JSX.Element {
  return (
    <label>
      <input
        type="checkbox"
        checked={props.isChecked}
        onChange={({ currentTarget }) => props.onCheck(currentTarget.checked)}
      />{" "}
      {props.words}
    </label>
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

/** Returns the time, which moves on every few seconds, for ages. */
export function useNow(everyMs = 5_000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Reads a document, and again every few seconds and when `again` changes. Keeps the last one meanwhile. */
export function useReading<T>(url: string, everyMs = 5_000, again?: unknown): Reading<T> {
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
  }, [url, everyMs, again]);
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
      {/* The same element in both cases, or a log that is open would begin anew. */}
      <div class={problem === undefined ? "loaded" : "loaded old"}>{children(value)}</div>
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
