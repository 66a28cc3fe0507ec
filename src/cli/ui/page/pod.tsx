import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Journey } from "../../explain/pod.ts";
import type { ComparedView, PodPageView } from "../model.ts";
import { objectCommands } from "./commands.ts";
import { Compared } from "./compared.tsx";
import { apiPath, readDocument } from "./document.ts";
import { Copies } from "./head.tsx";
import { MemberLink, NamespaceLink, NodeLink, WorkloadLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Log } from "./log.tsx";
import { Check, Loaded, Status, Time, Troubles, useReading } from "./parts.tsx";
import { changeQuery, type Route } from "./route.ts";
import { LedByServices } from "./services.tsx";
import { Events, Reasons } from "./table.tsx";

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
  const path = apiPath("pods", namespace, name);
  // A changed row is the signal to read again.
  const again = row === undefined ? "" : `${row.status}${row.member}${row.ready}${row.restarts}`;
  const reading = useReading<PodPageView>(path, undefined, again);
  const tab = TABS.find((each) => each === route.query.get("tab")) ?? "way";
  return (
    <div class="fill">
      <header class="view-head">
        <h1>{name}</h1>
        {row !== undefined && <Status row={row} />}
        <p>
          namespace <NamespaceLink name={namespace} />
          {row?.member !== undefined && (
            <>
              , in <MemberLink name={row.member} />
              {row.node !== undefined && (
                <>
                  {" on "}
                  <NodeLink member={row.member} name={row.node} />
                </>
              )}
            </>
          )}
          {row?.workload !== undefined && (
            <>
              , of <WorkloadLink namespace={namespace} of={row.workload} />
            </>
          )}
          <LedByServices namespace={namespace} pods={[name]} />
        </p>
        <Copies
          name={name}
          commands={objectCommands("pod", namespace, name)}
          yaml={() => readYaml(`${path}/delegate`)}
        />
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
        <Loaded reading={reading} what="the pod">
          {(value) =>
            tab === "way" ? (
              <Way journey={value.journey} />
            ) : tab === "log" ? (
              <Log path={path} pod={value} route={route} />
            ) : (
              <Both path={path} again={again} journey={value.journey} tab={tab} />
            )
          }
        </Loaded>
      </div>
    </div>
  );
}

/** Returns the pod's YAML, of the lines that it has beside its delegate. */
async function readYaml(url: string): Promise<string> {
  const { value, problem } = await readDocument<ComparedView>(url, {}, new AbortController().signal);
  if (value === undefined) throw new Error(problem);
  return value.lines.flatMap(({ left }) => (left === undefined ? [] : `${left}\n`)).join("");
}

function Way({ journey }: { journey: Journey }): JSX.Element {
  const [isZoned, setZoned] = useState(false);
  return (
    <>
      <Troubles of={journey.troubles} />
      {journey.notRead !== undefined && <p class="muted">{journey.notRead}</p>}
      <div class="zoned">
        <Check words="dates and time zone" isChecked={isZoned} onCheck={setZoned} />
      </div>
      <ol class="way">
        {journey.stations.map(({ at, clock, isUntimed = false, what, details, reasons }) => (
          <li key={what + at} class={at === undefined && !isUntimed ? "pending" : ""}>
            <span class="when">
              {at !== undefined && <Time at={at} isZoned={isZoned} />}
              {at === undefined && <span class="muted">{isUntimed ? "not on record" : "now"}</span>}
              {clock !== undefined && <small>clock of {clock === "host" ? "the host" : clock}</small>}
            </span>
            <div>
              <b>{what}</b>
              {reasons === undefined ? details.map((detail) => <p key={detail}>{detail}</p>) : <Reasons of={reasons} />}
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}

interface BothProps {
  readonly path: string;
  readonly again: string;
  readonly journey: Journey;
  readonly tab: "events" | "yaml";
}

/** The pod on the host, and its delegate in the member. */
function Both({ path, again, journey, tab }: BothProps): JSX.Element {
  return (
    <Loaded reading={useReading<ComparedView>(`${path}/delegate`, undefined, again)} what="the delegate">
      {(value) =>
        tab === "yaml" ? (
          <Compared view={value} what={["Pod", "delegate"]} />
        ) : (
          <EventsOfBoth journey={journey} delegate={value} />
        )
      }
    </Loaded>
  );
}

function EventsOfBoth({ journey, delegate }: { journey: Journey; delegate: ComparedView }): JSX.Element {
  const { member = "", events: told, notRead } = delegate;
  const all = [
    ...journey.events.map((event) => ({ ...event, where: "host" })),
    ...(told ?? []).map((event) => ({ ...event, where: member })),
  ].sort((a, b) => (a.at < b.at ? -1 : 1));
  const why = notRead ?? (told === undefined ? `you may not list events in ${member}` : undefined);
  return (
    <>
      {why !== undefined && member !== "" && (
        <p class="trouble">
          Events in {member} are not shown, but for those that Legation copied to the host: {why}
        </p>
      )}
      <Events of={all} none="None. API servers keep events for an hour by default." />
    </>
  );
}
