import type { JSX } from "preact";
import type { ServiceStatus } from "../../explain/service.ts";
import { clusterText, reachesText, serviceSummary, unreachedText } from "../../explain/service-words.ts";
import type { ServiceRow } from "../model.ts";
import { objectCommands } from "./commands.ts";
import { apiPath, type Reading } from "./document.ts";
import { Head } from "./head.tsx";
import { MemberLink, NamespaceLink, ServiceLink } from "./links.tsx";
import { useLive } from "./live.ts";
import { Loaded, listed, Troubles, useReading } from "./parts.tsx";
import { PodList } from "./pod-list.tsx";
import { linkTo } from "./route.ts";
import { Table } from "./table.tsx";

const READ_EVERY_MS = 15_000;

/** The view of a Service: where its endpoints are, and from where it leads to them. */
export function ServicePage({ namespace, name }: { namespace: string; name: string }): JSX.Element {
  const { pods } = useLive();
  const led = useServices(namespace).value?.find((row) => row.name === name)?.pods ?? [];
  const own = [...pods.values()].filter((row) => row.namespace === namespace && led.includes(row.name));
  return (
    <>
      <Head
        title={`Service/${name}`}
        about={
          <>
            namespace <NamespaceLink name={namespace} />
          </>
        }
        name={name}
        commands={objectCommands("service", namespace, name)}
      />
      <Loaded reading={useReading<ServiceStatus>(apiPath("services", namespace, name))} what="the Service">
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
        rows={clusters}
        keyOf={({ cluster }) => clusterText(cluster)}
        columns={{
          From: ({ cluster }) => (cluster === undefined ? clusterText(cluster) : <MemberLink name={cluster} />),
          Network: ({ network = "" }) => network,
          Ready: ({ ready }) => ready,
          "Not ready": ({ notReady }) => notReady,
          Reaches: (one) => reachesText(one) || "–",
          "Not reached": unreachedText,
        }}
      />
      <Troubles of={troubles} />
      {hidden !== undefined && <p class="muted">{hidden}</p>}
    </>
  );
}

/** Reads the Services of a namespace. */
export function useServices(namespace: string): Reading<readonly ServiceRow[]> {
  return useReading(apiPath("services", namespace), READ_EVERY_MS);
}

/** Links to the Services that lead to some of these pods. Nothing without such a Service. */
export function LedByServices({ namespace, pods }: { namespace: string; pods: readonly string[] }): JSX.Element | null {
  const all = useServices(namespace).value ?? [];
  const leading = all.filter((service) => service.pods.some((pod) => pods.includes(pod)));
  if (leading.length === 0) return null;
  return (
    <>, behind {listed(leading.map(({ name }) => <ServiceLink key={name} namespace={namespace} name={name} />))}</>
  );
}
