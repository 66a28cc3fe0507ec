import type { JSX } from "preact";
import { parted } from "./format.ts";
import { whyLost } from "./freshness.ts";
import { useLive } from "./live.ts";
import { linkTo } from "./route.ts";

/** A link by its name, which a row without room cuts before its end: that tells pods of a workload apart. */
export function NameLink({ href, name, title = name }: { href: string; name: string; title?: string }): JSX.Element {
  const [head, end] = parted(name);
  return (
    <a href={href} title={title} aria-label={name} class="cut">
      <span>{head}</span>
      {end}
    </a>
  );
}

/** A link to a view, whose path ends with the name. A dash while a part of the path is unknown. */
function Link({ to, name }: { to: readonly (string | undefined)[]; name: string | undefined }): JSX.Element {
  const path = to.flatMap((part) => part || []);
  return name === undefined || path.length < to.length ? <>–</> : <NameLink href={linkTo(path)} name={name} />;
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
  return <NameLink href={linkTo(["pods", namespace, name])} name={name} title={`${namespace}/${name}`} />;
}
