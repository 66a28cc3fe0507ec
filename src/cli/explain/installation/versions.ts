import { type Finding, fail, ok, warn } from "./finding.ts";

/** The minor versions of Kubernetes 1: the oldest that a host may have, and those that the project is tested with. */
const SUPPORTED = { hostFrom: 30, wholeJobsFrom: 32, overflowFrom: 35, testedFrom: 31, testedTo: 37 } as const;

/** Returns the minor version of `v1.36.3`. Undefined for any other text. */
function minorOf(gitVersion: string): number | undefined {
  const minor = /^v1\.(\d+)\b/.exec(gitVersion)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

export function hostVersion(gitVersion: string | undefined): Finding {
  const minor = minorOf(gitVersion ?? "");
  if (minor === undefined)
    return warn(`Kubernetes ${gitVersion ?? "of an unknown version"}`, "use a Kubernetes 1 API server");
  const what = `Kubernetes ${gitVersion}`;
  const { hostFrom, wholeJobsFrom, overflowFrom, testedTo } = SUPPORTED;
  if (minor < hostFrom)
    return fail(`${what} is older than 1.${hostFrom}`, `upgrade the host to Kubernetes 1.${hostFrom} or newer`);
  if (minor > testedTo)
    return warn(`${what} is newer than 1.${testedTo}, the newest that Legation is tested with`, untested);
  const lacks = [
    ...(minor < wholeJobsFrom ? [`no whole Jobs before 1.${wholeJobsFrom}`] : []),
    ...(minor < overflowFrom ? [`no overflow before 1.${overflowFrom}`] : []),
  ];
  return ok([what, ...lacks].join("; "));
}

export function memberVersion(subject: string, gitVersion: string | undefined): Finding {
  const minor = minorOf(gitVersion ?? "");
  const what = `${subject}: Kubernetes ${gitVersion ?? "of an unknown version"}`;
  const { testedFrom, testedTo } = SUPPORTED;
  if (minor === undefined || minor < testedFrom || minor > testedTo) {
    return warn(`${what}; Legation is tested with 1.${testedFrom} to 1.${testedTo}`, untested);
  }
  return ok(what);
}

const untested = "see CHANGELOG.md for a release of Legation that is tested with it";

/**
 * Judges the version that is installed against that of this command. `installed`: by part. Undefined: of another installation.
 * `repair`: command that installs.
 */
export function installedVersions(
  own: string,
  installed: ReadonlyMap<string, string | undefined>,
  repair: string,
): Finding[] {
  const others = [...installed].filter(([, of]) => of !== own);
  if (installed.size === 0)
    return [ok(`this command is version ${own}; webhook and controller run outside the cluster`)];
  if (others.length === 0) {
    const parts = new Intl.ListFormat("en-GB").format(["this command", ...installed.keys()]);
    return [ok(`${parts} are version ${own}`)];
  }
  return others.map(([part, of]) =>
    warn(
      `${part} is ${of === undefined ? "of an unknown version" : `version ${of}`}, and this command is ${own}`,
      `run \`${repair}\` of the newer version, and use that version here`,
    ),
  );
}
