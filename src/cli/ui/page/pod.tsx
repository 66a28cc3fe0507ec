import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Journey } from "../../status/pod.ts";
import type { PodView } from "../model.ts";
import { timeOf } from "./format.ts";
import { useLive } from "./live.ts";
import { Badge, Empty, useNow, useReading } from "./parts.tsx";
import { changeQuery, linkTo, type Route } from "./route.ts";
import { Reasons } from "./workloads.tsx";

const TABS = ["way", "log", "events", "yaml"] as const;
const TAB_NAMES: Readonly<Record<(typeof TABS)[number], string>> = {
  way: "Way",
  log: "Log",
  events: "Events",
  yaml: "YAML",
};

/** The view of a pod: its way, log, events and object. */
export function PodPage({ route, namespace, name }: { route: Route; namespace: string; name: string }): JSX.Element {
  const { pods } = useLive();
  const row = [...pods.values()].find((each) => each.namespace === namespace && each.name === name);
  const path = `/api/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  // A changed row is the signal to read again.
  const { value, problem } = useReading<PodView>(
    path,
    row === undefined ? "" : `${row.status}${row.member}${row.ready}`,
  );
  const tab = TABS.find((each) => each === route.query.get("tab")) ?? "way";
  return (
    <div class="fill">
      <header class="view-head">
        <h1>{name}</h1>
        {row !== undefined && <Badge tone={row.state}>{row.status}</Badge>}
        <p>
          namespace {namespace}
          {row?.member !== undefined && (
            <>
              , in <a href={linkTo(["pods"], { member: row.member })}>{row.member}</a>
              {row.node !== undefined && ` on ${row.node}`}
            </>
          )}
        </p>
        <div class="tabs" role="tablist" aria-label="Parts of the pod">
          {TABS.map((each) => (
            <button
              key={each}
              type="button"
              role="tab"
              id={`tab-${each}`}
              aria-selected={tab === each}
              aria-controls="tab-content"
              onClick={() => changeQuery(route, { tab: each })}
            >
              {TAB_NAMES[each]}
            </button>
          ))}
        </div>
      </header>
      <div id="tab-content" class="tab-content" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {problem !== undefined && value === undefined && <Empty title="This pod cannot be shown">{problem}</Empty>}
        {value !== undefined && tab === "way" && <Way journey={value.journey} />}
        {value !== undefined && tab === "events" && <Events journey={value.journey} />}
        {value !== undefined && tab === "yaml" && <pre class="code">{value.yaml}</pre>}
        {value !== undefined && tab === "log" && <Log path={path} containers={value.containers} route={route} />}
      </div>
    </div>
  );
}

function Way({ journey }: { journey: Journey }): JSX.Element {
  const now = useNow();
  return (
    <>
      {journey.troubles.map(({ what, remedy }) => (
        <p class="trouble" key={what}>
          {what}
          {remedy !== undefined && <small> {remedy}</small>}
        </p>
      ))}
      {journey.notRead !== undefined && <p class="muted">{journey.notRead}</p>}
      <ol class="way">
        {journey.stations.map(({ at, what, details }) => (
          <li key={what + at} class={at === undefined ? "pending" : ""}>
            <time dateTime={at}>{at === undefined ? "now" : timeOf(at, now)}</time>
            <div>
              <b>{what}</b>
              {what.startsWith("waits for a member cluster:") && details.length > 0 ? (
                <Reasons message={details.join("; ")} />
              ) : (
                details.map((detail) => <p key={detail}>{detail}</p>)
              )}
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}

function Events({ journey: { events } }: { journey: Journey }): JSX.Element {
  const now = useNow();
  if (events.length === 0) return <Empty title="No events">The API server keeps events for an hour by default.</Empty>;
  return (
    <table class="list">
      <thead>
        <tr>
          <th>Time</th>
          <th>Type</th>
          <th>Reason</th>
          <th class="wide">Message</th>
        </tr>
      </thead>
      <tbody>
        {events.map(({ at, type, reason, message }) => (
          <tr key={at + reason + message}>
            <td>{timeOf(at, now)}</td>
            <td>{type}</td>
            <td>{reason}</td>
            <td>{message}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// More would make the page slow; `kubectl logs` has all of it.
const MOST_LOG_CHARACTERS = 1_000_000;

function Log({ path, containers, route }: { path: string; containers: readonly string[]; route: Route }): JSX.Element {
  const container = route.query.get("container") ?? containers[0] ?? "";
  const [text, setText] = useState("");
  const [end, setEnd] = useState("");
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    setText("");
    setEnd("");
    const stop = new AbortController();
    followLog(`${path}/log?container=${encodeURIComponent(container)}`, stop.signal, (chunk) =>
      setText((before) => (before + chunk).slice(-MOST_LOG_CHARACTERS)),
    ).then(setEnd, (error: unknown) => {
      if (!stop.signal.aborted) setEnd(`the log was cut: ${error instanceof Error ? error.message : String(error)}`);
    });
    return () => stop.abort();
  }, [path, container]);
  useEffect(() => {
    const element = box.current;
    // Stays at the end for readers who are there.
    if (element !== null && element.scrollHeight - element.scrollTop - element.clientHeight < 400)
      element.scrollTop = element.scrollHeight;
  }, [text]);
  return (
    <>
      <div class="filters">
        <select
          aria-label="Container"
          value={container}
          onChange={({ currentTarget }) => changeQuery(route, { container: currentTarget.value })}
        >
          {containers.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <span class="muted" role="status">
          {end === "" ? "following" : end}
        </span>
      </div>
      <section class="code log" ref={box} tabIndex={0} aria-label={`Log of ${container}`}>
        {text}
      </section>
    </>
  );
}

/** Reads a log to its end. Resolves to the words that say how it ended. */
async function followLog(url: string, signal: AbortSignal, take: (chunk: string) => void): Promise<string> {
  const response = await fetch(url, { signal });
  if (!response.ok || response.body === null) return String((await response.json()).message);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return "the log is complete";
    take(value);
  }
}
