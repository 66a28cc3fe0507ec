import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { WholeObjectStatus } from "../../explain/whole-object.ts";
import type { WorkloadMember, WorkloadStatus } from "../../explain/workload.ts";
import { workloadCommands } from "./commands.ts";
import { apiPath } from "./document.ts";
import { counted } from "./format.ts";
import { Head } from "./head.tsx";
import { MemberLink, NamespaceLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Loaded, Troubles, useReading } from "./parts.tsx";
import { PodList } from "./pod-list.tsx";
import type { Route } from "./route.ts";
import { LedByServices } from "./services.tsx";
import { Pending, Table } from "./table.tsx";
import { WholeMembers } from "./whole.tsx";

/** The view of a workload: what its scheduling preferences want in each member, beside what is there. */
export function WorkloadPage({
  route,
  kind,
  namespace,
  name,
}: {
  route: Route;
  kind: string;
  namespace: string;
  name: string;
}): JSX.Element {
  const { pods, version } = useLive();
  const reading = useReading<WorkloadStatus | WholeObjectStatus>(apiPath("workloads", kind, namespace, name));
  const workload = `${kind}/${name}`;
  const own = useMemo(
    () => [...pods.values()].filter((row) => row.namespace === namespace && row.workload === workload),
    [version, namespace, workload],
  );
  return (
    <>
      <Head
        title={workload}
        about={
          <>
            namespace <NamespaceLink name={namespace} />
            <LedByServices namespace={namespace} pods={own.map((row) => row.name)} />
          </>
        }
        name={name}
        commands={workloadCommands(kind, namespace, name)}
      />
      <Loaded reading={reading} what="the workload">
        {(value) =>
          "whole" in value ? (
            <WholeMembers value={value} path={apiPath("objects", "jobs", namespace, name)} route={route} />
          ) : (
            <Division status={value} />
          )
        }
      </Loaded>
      <h2>Pods</h2>
      <PodList pods={own} query={{ namespace, workload }} />
    </>
  );
}

function Division({ status }: { status: WorkloadStatus }): JSX.Element {
  const { clusters, replicas, pods, pending, troubles, rebalance, whyOnHost, notDelegated } = status;
  const most = Math.max(1, ...clusters.map(({ wanted = 0, has }) => Math.max(wanted, has)));
  return (
    <>
      <Table
        isMuted
        none="No member has joined yet."
        caption={
          <>
            {counted(replicas, "replica")} wanted, {pods} there
            {rebalance === true && "; running replicas move to keep the division"}
          </>
        }
        rows={clusters}
        keyOf={({ cluster }) => cluster}
        columns={{
          Member: ({ cluster }) => <MemberLink name={cluster} />,
          Wanted: ({ wanted = "–" }) => wanted,
          There: ({ has }) => has,
          Ready: ({ ready }) => ready,
          Moving: (member) => movingText(member, rebalance === true),
          "Wanted and there": ({ cluster, wanted, has }) => (
            <div class="pair" role="img" aria-label={`${cluster}: ${wanted ?? "no share"} wanted, ${has} there`}>
              <i class="others" style={{ width: `${((wanted ?? 0) / most) * 100}%` }} />
              <i class="ours" style={{ width: `${(has / most) * 100}%` }} />
            </div>
          ),
          "Why not more": ({ whyNot = "" }) => whyNot,
        }}
      />
      <Troubles of={troubles} />
      {notDelegated > 0 && (
        <p class="trouble">
          {counted(notDelegated, "pod")} not delegated: {whyOnHost}
        </p>
      )}
      <Pending of={pending} fate="without a member" heading="h2" />
    </>
  );
}

/** Returns what moves: pods that end there, and pods beyond the member's share. */
function movingText({ wanted, has, statuses, overflow = 0 }: WorkloadMember, rebalances: boolean): string {
  const { Terminating: ending = 0 } = statuses;
  const beyond = wanted === undefined ? 0 : has - wanted;
  return [
    ...(ending > 0 ? [`${ending} end`] : []),
    ...(beyond > 0 ? [rebalances ? `${beyond} to move away` : `${beyond} beyond its share`] : []),
    ...(beyond < 0 ? [`${-beyond} to come`] : []),
    ...(overflow > 0 ? [`${overflow} more if it had room`] : []),
  ].join(", ");
}
