import type { JSX } from "preact";
import { podsCommands } from "./commands.ts";
import { CopyButtons } from "./copy.tsx";
import { counted } from "./format.ts";
import { MemberLink, ServiceLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Loaded, Table } from "./parts.tsx";
import { ObjectList, PodList } from "./pod-list.tsx";
import { useServices } from "./services.tsx";
import { byKey, jobWorkloads, podWorkloads } from "./workload-rows.ts";
import { useJobs } from "./workloads.tsx";

/** The view of a node in a member: this host's pods there. */
export function NodePage({ member, name }: { member: string; name: string }): JSX.Element {
  const own = [...useLive().pods.values()].filter((row) => row.member === member && row.node === name);
  return (
    <>
      <header class="view-head">
        <h1>{name}</h1>
        <p>
          node in <MemberLink name={member} />, which shows its room; {counted(own.length, "pod")} of this host
        </p>
      </header>
      <PodList pods={own} query={{ member, q: name }} />
    </>
  );
}

/** The view of a namespace: its workloads, pods and whole objects. */
export function NamespacePage({ name }: { name: string }): JSX.Element {
  const { pods, whole } = useLive();
  const own = [...pods.values()].filter(({ namespace }) => namespace === name);
  const { jobs, problem } = useJobs();
  const known = podWorkloads(own);
  const others = jobs.filter(({ namespace }) => namespace === name);
  const workloads = [...known, ...jobWorkloads(others, known)].sort(byKey);
  const objects = whole.rows.filter(({ namespace }) => namespace === name);
  return (
    <>
      <header class="view-head">
        <h1>{name}</h1>
        <p>namespace, {counted(own.length, "delegated pod")}</p>
        <CopyButtons name={name} commands={podsCommands(name)} />
      </header>
      <h2>Workloads</h2>
      {problem !== undefined && <p class="trouble">Finished Jobs and CronJobs are not shown: {problem}</p>}
      {workloads.length === 0 ? (
        <p class="muted">No workload has delegated pods.</p>
      ) : (
        <Table
          columns={["Workload", "Pods", "Waiting", "Members", "Why"]}
          rows={workloads.map(({ key, link, kind, name: workload, total, waiting, places, why }) => ({
            key,
            cells: [
              <a href={link} key="workload">
                {kind}/{workload}
              </a>,
              total,
              waiting,
              [...places].map(([member, { text }]) => `${member}: ${text}`).join(", "),
              why ?? "",
            ],
          }))}
        />
      )}
      <Services namespace={name} />
      <h2>Whole objects</h2>
      <ObjectList objects={objects} />
      <h2>Pods</h2>
      <PodList pods={own} query={{ namespace: name }} />
    </>
  );
}

function Services({ namespace }: { namespace: string }): JSX.Element {
  return (
    <>
      <h2>Services</h2>
      <Loaded reading={useServices(namespace)} what="its Services">
        {(rows) => (
          <Table
            columns={["Service", "What", "Ready"]}
            none="It has none."
            rows={rows.map(({ name, about, ready, endpoints }) => ({
              key: name,
              cells: [
                <ServiceLink namespace={namespace} name={name} key="service" />,
                about,
                `${ready} of ${endpoints}`,
              ],
            }))}
          />
        )}
      </Loaded>
    </>
  );
}
