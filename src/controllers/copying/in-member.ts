import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";

/**
 * Writes in the member of that name; nothing is done when there is none any more. The member hears of a failure, which may mean
 * trouble for all of it. Rejects as `write` does.
 */
export async function inMember<T>(
  registry: Pick<Registry, "member">,
  name: string,
  write: (member: Member) => Promise<T>,
): Promise<T | undefined> {
  const member = registry.member(name);
  if (member === undefined) return undefined;
  try {
    return await write(member);
  } catch (error) {
    member.noteFailure(error);
    throw error;
  }
}
