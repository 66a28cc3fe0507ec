import type { JSX } from "preact";
import type { ServiceStatus } from "../../explain/service.ts";
import { clusterText, reachesText, serviceSummary, unreachedText } from "../../explain/service-words.ts";
import type { ServiceRow } from "../model.ts";
import { serviceCommands } from "./commands.ts";
import { CopyButtons } from "./copy.tsx";
import type { Reading } from "./document.ts";
import { MemberLink, NamespaceLink, ServiceLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Listed, Loaded, Table, Troubles, useReading } from "./parts.tsx";
import { PodList } from "./pod-list.tsx";
import { linkTo } from "./route.ts";

const READ_EVERY_MS = 15_000;

/** The view of a Service: where its endpoints are, and from where it leads to them. */
export function ServicePage({ namespace, name }: { namespace: string; name: string }): JSX.Element {
  const path = `/api/services/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const { pods } = useLive();
  const led = useServices(namespace).value?.find((row) => row.name === name)?.pods ?? [];
  const own = [...pods.values()].filter((row) => row.namespace === namespace && led.includes(row.name));
  return (
    <>
      <header class="view-head">
        <h1>Service/{name}</h1>
        <p>
          namespace <NamespaceLink name={namespace} />
        </p>
        <CopyButtons name={name} commands={serviceCommands(namespace, name)} />
      </header>
      <Loaded reading={useReading<ServiceStatus>(path, undefined)} what="the Service">
        {(value) => <Reach value={value} />}
      </Loaded>
      <h2>Delegated pods that it leads to</h2>
      <PodList pods={own} query={{ namespace }} />
    </>
  );
}

function Reach({ value }: { value: ServiceStatus }): JSX.Element {
  const { namespace, relay, clusters, whole, troubles, hidden } = value;
  return (
    <>
      <Table
        isMuted
        columns={["From", "Network", "Ready", "Not ready", "Reaches", "Not reached"]}
        caption={
          <>
            {serviceSummary(value)}
            {relay !== undefined && (
              <>
                ; see <ServiceLink namespace={namespace} name={relay.to} />
              </>
            )}
            {whole !== undefined && (
              <>
                ; <a href={linkTo(["objects", "services", namespace, value.name])}>whole in members</a>
              </>
            )}
          </>
        }
        rows={clusters.map((one) => ({
          key: clusterText(one.cluster),
          cells: [
            one.cluster === undefined ? clusterText(undefined) : <MemberLink name={one.cluster} key="from" />,
            one.network ?? "",
            one.ready,
            one.notReady,
            reachesText(one) || "–",
            unreachedText(one),
          ],
        }))}
      />
      <Troubles of={troubles} />
      {hidden !== undefined && <p class="muted">{hidden}</p>}
    </>
  );
}

/** Reads the Services of a namespace. */
export function useServices(namespace: string): Reading<readonly ServiceRow[]> {
  return useReading(`/api/services/${encodeURIComponent(namespace)}`, undefined, READ_EVERY_MS);
}

/** Links to the Services that lead to some of these pods. Nothing without such a Service. */
export function LedByServices({ namespace, pods }: { namespace: string; pods: readonly string[] }): JSX.Element | null {
  const all = useServices(namespace).value ?? [];
  const leading = all.filter((service) => service.pods.some((pod) => pods.includes(pod)));
  if (leading.length === 0) return null;
  return (
    <>
      , behind{" "}
      <Listed items={leading.map(({ name }) => [name, <ServiceLink key={name} namespace={namespace} name={name} />])} />
    </>
  );
}
