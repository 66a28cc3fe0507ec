import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { WholeJobStatus } from "../../explain/whole-job.ts";
import type { WorkloadMember, WorkloadStatus } from "../../explain/workload.ts";
import { workloadCommands } from "./commands.ts";
import { CopyButtons } from "./copy.tsx";
import { counted } from "./format.ts";
import { MemberLink, NamespaceLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Loaded, Table, Troubles, useReading } from "./parts.tsx";
import { PodList } from "./pod-list.tsx";
import { Pending } from "./reasons.tsx";
import type { Route } from "./route.ts";
import { LedByServices } from "./services.tsx";
import { WholeJob } from "./whole.tsx";

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
  const reading = useReading<WorkloadStatus | WholeJobStatus>(
    `/api/workloads/${[kind, namespace, name].map(encodeURIComponent).join("/")}`,
    undefined,
  );
  const own = useMemo(
    () => [...pods.values()].filter((row) => row.namespace === namespace && row.workload === `${kind}/${name}`),
    [version, namespace, kind, name],
  );
  return (
    <>
      <header class="view-head">
        <h1>
          {kind}/{name}
        </h1>
        <p>
          namespace <NamespaceLink name={namespace} />
          <LedByServices namespace={namespace} pods={own.map((row) => row.name)} />
        </p>
        <CopyButtons name={name} commands={workloadCommands(kind, namespace, name)} />
      </header>
      <Loaded reading={reading} what="the workload">
        {(value) => ("whole" in value ? <WholeJob job={value} route={route} /> : <Division status={value} />)}
      </Loaded>
      <h2>Pods</h2>
      <PodList pods={own} query={{ namespace, workload: `${kind}/${name}` }} />
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
        columns={["Member", "Wanted", "There", "Ready", "Moving", "Wanted and there", "Why not more"]}
        none="No member has joined yet."
        caption={
          <>
            {counted(replicas, "replica")} wanted, {pods} there
            {rebalance === true && "; running replicas move to keep the division"}
          </>
        }
        rows={clusters.map((member) => ({
          key: member.cluster,
          cells: [
            <MemberLink name={member.cluster} key="member" />,
            member.wanted ?? "–",
            member.has,
            member.ready,
            movingText(member, rebalance === true),
            <div
              class="pair"
              role="img"
              aria-label={`${member.cluster}: ${member.wanted ?? "no share"} wanted, ${member.has} there`}
              key="pair"
            >
              <i class="others" style={{ width: `${((member.wanted ?? 0) / most) * 100}%` }} />
              <i class="ours" style={{ width: `${(member.has / most) * 100}%` }} />
            </div>,
            member.whyNot ?? "",
          ],
        }))}
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
