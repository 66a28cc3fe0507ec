import type { JSX } from "preact";
import { parted } from "./format.ts";
import { whyLost } from "./freshness.ts";
import { useLive } from "./live.ts";
import { linkTo } from "./route.ts";

/** A link to a view by its path. A dash while a part of the path is unknown. */
function Link({
  to,
  name,
  title = name,
}: {
  to: readonly (string | undefined)[];
  name: string | undefined;
  title?: string | undefined;
}): JSX.Element {
  const path = to.flatMap((part) => part || []);
  return name === undefined || path.length < to.length ? (
    <>–</>
  ) : (
    <a href={linkTo(path)} title={title} aria-label={name} class="cut">
      <Cut name={name} />
    </a>
  );
}

/** A name that a row without room for it cuts before its end, which tells pods of a workload apart. */
export function Cut({ name }: { name: string }): JSX.Element {
  const [head, end] = parted(name);
  return (
    <>
      <span>{head}</span>
      {end}
    </>
  );
}

/** A member's name as a link, marked while the member is lost. */
export function MemberLink({ name }: { name: string | undefined }): JSX.Element {
  const lost = whyLost(name ?? "", useLive().members);
  return (
    <span>
      <Link to={["members", name]} name={name} />
      {name !== undefined && lost !== undefined && (
        <span class="chip lost" title={lost}>
          lost
        </span>
      )}
    </span>
  );
}

export function NamespaceLink({ name }: { name: string | undefined }): JSX.Element {
  return <Link to={["namespaces", name]} name={name} />;
}

/** A node in a member. */
export function NodeLink({ member, name }: { member: string | undefined; name: string | undefined }): JSX.Element {
  return <Link to={["nodes", member, name]} name={name} />;
}

/** A workload, named as `Deployment/web`. */
export function WorkloadLink({ namespace, of }: { namespace: string; of: string | undefined }): JSX.Element {
  const [kind, name] = of?.split("/") ?? [];
  return <Link to={["workloads", kind, namespace, name]} name={of} />;
}

export function ServiceLink({ namespace, name }: { namespace: string; name: string }): JSX.Element {
  return <Link to={["services", namespace, name]} name={name} />;
}

export function PodLink({ namespace, name }: { namespace: string; name: string }): JSX.Element {
  return <Link to={["pods", namespace, name]} name={name} title={`${namespace}/${name}`} />;
}
