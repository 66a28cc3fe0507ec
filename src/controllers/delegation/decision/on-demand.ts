import { type Needs, needsState, type Preparation } from "../../../placement/needs.ts";
import { holderOf } from "./delegates.ts";
import { hasProxy, type View } from "./view.ts";

/** Returns the view with the state of what the pod needs of its namespace. */
export function withNeeds(view: View): View {
  return view.onDemand === undefined ? view : { ...view, ...stateOf(view.onDemand.needs()) };
}

/** Returns the view with what the pod needs and the members' ranking. */
export function ranked<V extends View>(view: V): V {
  return { ...view, ...view.onDemand?.ranked() };
}

/** Returns the state of the copies that the pod needs in the member; undefined once the pod has a delegate. */
export function preparationFor(view: View, member: string): Preparation | undefined {
  const { onDemand, members } = view;
  if (onDemand === undefined) return members.find(({ name }) => name === member)?.preparation;
  if (!hasProxy(view) || holderOf(view) !== undefined) return undefined;
  const needs = onDemand.needs();
  return needs?.state === "there" ? needs.in(member) : undefined;
}

/** Returns the view as plain data, with what was asked for, to log and replay. */
export function recorded({ onDemand, ...view }: View): View {
  return { ...view, ...onDemand?.known() };
}

export function stateOf(needs: Needs | undefined): Pick<View, "needs"> {
  const state = needsState(needs);
  return state === undefined ? {} : { needs: state };
}
