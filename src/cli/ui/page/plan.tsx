import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import {
  type Plan,
  type PlannedMember,
  placedText,
  type WorkloadPlan,
  waitingPods,
  whyNotMore,
} from "../../plan/outcome.ts";
import { refusalOf } from "./document.ts";
import { Head } from "./head.tsx";
import { MemberLink } from "./links.tsx";
import { Pending, Reasons, Table } from "./table.tsx";
import { wholeWords } from "./whole-plan.ts";

const OUTCOMES: Readonly<Record<WorkloadPlan["outcome"], { readonly words: string; readonly tone: string }>> = {
  fits: { words: "Fits", tone: "running" },
  waits: { words: "Would wait", tone: "waiting" },
  refused: { words: "Would be refused", tone: "failed" },
  notDelegated: { words: "Not delegated", tone: "succeeded" },
};

const EXAMPLE = "Paste or drop a manifest: a Deployment, Job, Pod, … as `kubectl apply` takes it";

/** Shows where the pods of a manifest would go. Nothing is stored. */
export function PlanPage(): JSX.Element {
  const [{ plan, problem }, setAnswer] = useState<Answer>({});
  const [isAsking, setAsking] = useState(false);
  const text = useRef<HTMLTextAreaElement>(null);
  const ask = async (): Promise<void> => {
    setAsking(true);
    setAnswer(await askPlan(text.current?.value ?? ""));
    setAsking(false);
  };
  const drop = async (event: DragEvent): Promise<void> => {
    const [file] = event.dataTransfer?.files ?? [];
    if (file === undefined) return;
    event.preventDefault();
    if (text.current !== null) text.current.value = await file.text();
    await ask();
  };
  return (
    <>
      <Head title="Plan" about="Where the pods of a manifest would go now. Nothing is stored." />
      <form
        class="plan"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <textarea
          ref={text}
          aria-label="Manifest"
          class="code"
          spellcheck={false}
          placeholder={EXAMPLE}
          onDrop={(event) => void drop(event)}
          onKeyDown={({ key, ctrlKey, metaKey }) => {
            if (key === "Enter" && (ctrlKey || metaKey)) void ask();
          }}
        />
        <button type="submit" class="main" disabled={isAsking}>
          {isAsking ? "Planning…" : "Plan"}
        </button>
      </form>
      <div aria-live="polite">
        {problem !== undefined && <p class="trouble">{problem}</p>}
        {plan?.workloads.map((workload) => (
          <PlannedWorkload key={`${workload.kind}/${workload.namespace}/${workload.name}`} workload={workload} />
        ))}
        {plan?.guesses.map(({ cluster, message }) => (
          <p class="muted" key={cluster + message}>
            A guess for {cluster}: {message}
          </p>
        ))}
        {plan?.notChecked.map((message) => (
          <p class="muted" key={message}>
            Not checked: {message}
          </p>
        ))}
        {plan?.hidden !== undefined && <p class="muted">{plan.hidden}</p>}
      </div>
    </>
  );
}

interface Answer {
  readonly plan?: Plan;
  readonly problem?: string;
}

async function askPlan(manifest: string): Promise<Answer> {
  try {
    const headers = { "content-type": "application/yaml" };
    const response = await fetch("/api/plan", { method: "POST", headers, body: manifest });
    return response.ok ? { plan: (await response.json()) as Plan } : { problem: await refusalOf(response) };
  } catch (error) {
    return { problem: `the page's server does not answer: ${String(error)}` };
  }
}

function PlannedWorkload({ workload }: { workload: WorkloadPlan }): JSX.Element {
  const { kind, namespace, name, outcome, message, warnings, notes, pods, clusters, object } = workload;
  const { words, tone } = OUTCOMES[outcome];
  return (
    <article class="card planned" aria-label={`${kind} ${name}`}>
      <header>
        <h2>
          {kind} {namespace === undefined ? name : `${namespace}/${name}`}
        </h2>
        <span class={`badge ${tone}`}>{words}</span>
      </header>
      {message !== undefined && <p>{message}</p>}
      {[...notes, ...warnings].map((line) => (
        <p class="muted" key={line}>
          {line}
        </p>
      ))}
      {clusters.length > 0 && <Shares clusters={clusters} pods={pods.length} />}
      {object !== undefined && <WholePlan place={object} />}
      <Pending of={waitingPods(pods)} fate="would wait" heading="h3" />
    </article>
  );
}

function WholePlan({ place }: { place: NonNullable<WorkloadPlan["object"]> }): JSX.Element {
  const { summary, reasons } = wholeWords(place);
  return (
    <>
      <p>{summary}</p>
      {reasons.length > 0 && <Reasons of={reasons} />}
    </>
  );
}

function Shares({ clusters, pods }: { clusters: readonly PlannedMember[]; pods: number }): JSX.Element {
  const most = Math.max(1, pods);
  return (
    <Table
      isMuted
      rows={clusters}
      keyOf={({ cluster }) => cluster}
      columns={{
        Member: ({ cluster }) => <MemberLink name={cluster} />,
        Now: ({ now }) => now,
        Planned: placedText,
        Share: (member) => (
          <div class="pair" role="img" aria-label={`${member.pods} of ${pods} in ${member.cluster}`}>
            <i class="ours" style={{ width: `${(member.pods / most) * 8}rem` }} />
          </div>
        ),
        "Why not more": (member) => whyNotMore(member, pods).join("; "),
      }}
    />
  );
}
