import type { JSX } from "preact";
import { podsCommands } from "./commands.ts";
import { counted } from "./format.ts";
import { Head } from "./head.tsx";
import { MemberLink, ServiceLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Loaded } from "./parts.tsx";
import { ObjectList, PodList } from "./pod-list.tsx";
import { useServices } from "./services.tsx";
import { Table } from "./table.tsx";
import { byKey, jobWorkloads, podWorkloads } from "./workload-rows.ts";
import { useJobs } from "./workloads.tsx";

/** The view of a node in a member: this host's pods there. */
export function NodePage({ member, name }: { member: string; name: string }): JSX.Element {
  const own = [...useLive().pods.values()].filter((row) => row.member === member && row.node === name);
  return (
    <>
      <Head
        title={name}
        about={
          <>
            node in <MemberLink name={member} />, which shows its room; {counted(own.length, "pod")} of this host
          </>
        }
      />
      <PodList pods={own} query={{ member, q: name }} />
    </>
  );
}

/** The view of a namespace: its workloads, pods and whole objects. */
export function NamespacePage({ name }: { name: string }): JSX.Element {
  const { pods, whole } = useLive();
  const own = [...pods.values()].filter(({ namespace }) => namespace === name);
  const { jobs, notes } = useJobs();
  const known = podWorkloads(own);
  const others = jobs.filter(({ namespace }) => namespace === name);
  return (
    <>
      <Head
        title={name}
        about={`namespace, ${counted(own.length, "delegated pod")}`}
        name={name}
        commands={podsCommands(name)}
      />
      <h2>Workloads</h2>
      {notes}
      <Table
        none="No workload has delegated pods."
        rows={[...known, ...jobWorkloads(others, known)].sort(byKey)}
        keyOf={({ key }) => key}
        columns={{
          Workload: (row) => (
            <a href={row.link}>
              {row.kind}/{row.name}
            </a>
          ),
          Pods: ({ total }) => total,
          Waiting: ({ waiting }) => waiting,
          Members: ({ places }) => [...places].map(([member, { text }]) => `${member}: ${text}`).join(", "),
          Why: ({ why = "" }) => why,
        }}
      />
      <h2>Services</h2>
      <Loaded reading={useServices(name)} what="its Services">
        {(rows) => (
          <Table
            none="It has none."
            rows={rows}
            keyOf={(service) => service.name}
            columns={{
              Service: (service) => <ServiceLink namespace={name} name={service.name} />,
              What: ({ about }) => about,
              Ready: ({ ready, endpoints }) => `${ready} of ${endpoints}`,
            }}
          />
        )}
      </Loaded>
      <h2>Whole objects</h2>
      <ObjectList objects={whole.rows.filter(({ namespace }) => namespace === name)} />
      <h2>Pods</h2>
      <PodList pods={own} query={{ namespace: name }} />
    </>
  );
}
