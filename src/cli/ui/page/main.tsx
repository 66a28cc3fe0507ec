import { type JSX, render } from "preact";
import { useEffect } from "preact/hooks";
import type { QueuesView } from "../model.ts";
import { FindField, FindPage } from "./find.tsx";
import { capital } from "./format.ts";
import { connectionWords, whyOld } from "./freshness.ts";
import { Keys, onKey, openKeys, viewsOf } from "./keys.tsx";
import { live, useLive } from "./live.ts";
import { MemberPage } from "./member.tsx";
import { MembersView } from "./members.tsx";
import { Overview } from "./overview.tsx";
import { Empty, useNow, useReading } from "./parts.tsx";
import { NamespacePage, NodePage } from "./places.tsx";
import { PlanPage } from "./plan.tsx";
import { PodPage } from "./pod.tsx";
import { Pods } from "./pods.tsx";
import { Queues, QueuesProvider } from "./queues.tsx";
import { linkTo, type Route, useRoute } from "./route.ts";
import { ServicePage } from "./services.tsx";
import { SignInPage } from "./sign-in.tsx";
import { WholeObjectPage } from "./whole.tsx";
import { WorkloadPage } from "./workload.tsx";
import { Workloads } from "./workloads.tsx";

// Views without a line of their own.
const PARENTS: Readonly<Record<string, string>> = {
  objects: "workloads",
  nodes: "members",
  namespaces: "workloads",
  services: "workloads",
};

const QUEUES_EVERY_MS = 10_000;

function Page(): JSX.Element {
  const route = useRoute();
  const { signedOut } = useLive();
  useEffect(() => {
    document.title = `${[...route.path].reverse().join(" · ") || "overview"} · Legation`;
  }, [route]);
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (signedOut === "token") return <SignInPage />;
  if (signedOut === "address") {
    return (
      <main class="sign-in">
        <Empty isView title="This page has ended">
          <p>Start it again, and open the address that it prints:</p>
          <pre>legation ui</pre>
        </Empty>
      </main>
    );
  }
  return <Views route={route} />;
}

function Views({ route }: { route: Route }): JSX.Element {
  const { hostName, isOld, session } = useLive();
  const [view = "overview"] = route.path;
  const queues = useReading<QueuesView>("/api/queues", QUEUES_EVERY_MS);
  const hasQueues = (queues.value?.queues?.length ?? 0) > 0;
  return (
    <QueuesProvider value={queues}>
      <button type="button" class="skip" onClick={focusContent}>
        Skip to the content
      </button>
      <nav aria-label="Views">
        <strong class="brand">Legation</strong>
        <span class="host" title="The host cluster">
          {hostName}
        </span>
        {viewsOf(hasQueues).map(({ path, name, key }) => (
          <a key={path} href={linkTo([path])} aria-current={(PARENTS[view] ?? view) === path ? "page" : undefined}>
            {name} <kbd>{key}</kbd>
          </a>
        ))}
        <FindField route={route} />
        <button type="button" class="keys" onClick={openKeys}>
          Keys <kbd>?</kbd>
        </button>
        <Connection />
        {session?.by === "token" && (
          <button type="button" title={session.user} onClick={() => void live.signOut()}>
            Sign out
          </button>
        )}
      </nav>
      <main id="content" tabIndex={-1}>
        <Age />
        <Hidden />
        <div class={`view ${isOld ? "old" : ""}`}>
          <View route={route} key={route.path.join("/")} />
        </div>
      </main>
      <Keys hasQueues={hasQueues} />
    </QueuesProvider>
  );
}

/** When the host was last heard. */
function Connection(): JSX.Element {
  const heard = useLive();
  const words = connectionWords(heard, useNow(1_000));
  // Screen readers are told that it changes, not each second of it.
  return (
    <span class={`connection ${words === "live" ? "" : "lost"}`} title="When the host's API server was last heard">
      {words}
      <span class="hidden" role="status">
        {heard.isOld ? "The host is silent" : ""}
      </span>
    </span>
  );
}

/** Why what is shown may be old. */
function Age(): JSX.Element | null {
  const why = whyOld(useLive(), useNow(1_000));
  return why === undefined ? null : <p class="trouble">{why}</p>;
}

/** What the user may not see. */
function Hidden(): JSX.Element | null {
  const { line } = useLive().hidden;
  return line === undefined ? null : <p class="muted">{capital(line)}.</p>;
}

/** A view, given the names that its address has. */
type View = (route: Route, first: string, second: string, third: string) => JSX.Element;

// Views by the first word of the address, and by the number of names that follow it.
const VIEWS: Readonly<Record<string, View>> = {
  "overview 0": () => <Overview />,
  "members 0": (route) => <MembersView route={route} />,
  "members 1": (_, name) => <MemberPage name={name} />,
  "namespaces 1": (_, name) => <NamespacePage name={name} />,
  "nodes 2": (_, member, name) => <NodePage member={member} name={name} />,
  "services 2": (_, namespace, name) => <ServicePage namespace={namespace} name={name} />,
  "workloads 0": (route) => <Workloads route={route} />,
  "workloads 3": (route, kind, namespace, name) => <WorkloadPage {...{ route, kind, namespace, name }} />,
  "objects 3": (route, ...names) => <WholeObjectPage route={route} names={names} />,
  "pods 0": (route) => <Pods route={route} />,
  "pods 2": (route, namespace, name) => <PodPage route={route} namespace={namespace} name={name} />,
  "queues 0": () => <Queues />,
  "queues 1": (_, name) => <Queues only={name} />,
  "find 0": (route) => <FindPage route={route} />,
  "plan 0": () => <PlanPage />,
};

function View({ route }: { route: Route }): JSX.Element {
  const [word = "overview", ...names] = route.path;
  const [first = "", second = "", third = ""] = names;
  const view = VIEWS[`${word} ${names.length}`];
  if (view !== undefined) return view(route, first, second, third);
  return (
    <Empty isView title="There is no such view">
      Choose another one on the left.
    </Empty>
  );
}

function focusContent(): void {
  document.getElementById("content")?.focus();
}

live.start();
const page = document.getElementById("page");
if (page !== null) render(<Page />, page);
