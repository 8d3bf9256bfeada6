import { MiningError } from './mining-error.js'
import { askJson } from './server-answers.js'
import {
  type ExpectedDeployment,
  profileDifference,
  type ServerDeployment,
  type TreeDifference,
  treeDifference,
} from './tree-difference.js'
import { serverJson, treeJson, treeOfJson } from './tree-json.js'

export type { ExpectedDeployment, ServerDeployment } from './tree-difference.js'

/** Time for the answer, in milliseconds. */
const TIMEOUT = 10_000

/**
 * Asks a server which tree it follows (`/deployment.json`), and compares the answer with the user's settings. A server that
 * contradicts them is of no use.
 *
 * @param url Without a slash at the end.
 * @throws MiningError `NO_ANSWER`; `NO_TREE`, also if it is another kind of server; `BAD_INDEX` if the tree is impossible;
 * `NEWER_COVENANT`; `OTHER_TREE` with the first difference.
 */
export async function serverDeployment(
  url: string,
  expected: ExpectedDeployment = {},
  { signal }: { signal?: AbortSignal } = {},
): Promise<ServerDeployment> {
  const { body } = await askJson({ url: `${url}/deployment.json`, timeout: TIMEOUT, signal })
  const answer = serverJson.safeParse(body)
  if (!answer.success) throw new MiningError('NO_TREE', `${url} is not a minetree server`)
  requireSame(url, profileDifference(expected, answer.data))
  if (answer.data.genesis === undefined) throw new MiningError('NO_TREE', `${url} follows no tree of names`)
  const tree = treeJson.safeParse(body)
  if (!tree.success) throw new MiningError('BAD_INDEX', `${url} describes an impossible tree`)
  const stated = treeOfJson(tree.data, { says: `${url} names` })
  requireSame(url, treeDifference(expected, stated))
  return { ...stated, deployment: expected.deployment ?? stated.deployment }
}

/** @throws MiningError `OTHER_TREE`. */
export function requireSame(url: string, difference: TreeDifference | undefined): void {
  if (difference === undefined) return
  const { setting, expected, actual } = difference
  throw new MiningError('OTHER_TREE', `${setting} is ${expected}, and ${url} follows ${actual}`)
}
