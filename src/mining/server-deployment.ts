import * as z from 'zod'
import type { Network } from '../../backend/src/protocol/address.js'
import { readUtf8 } from '../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES, type ProfileName } from '../../backend/src/protocol/profile.js'
import { askJson } from './ask-server.js'
import { MiningError } from './mining-error.js'

/** How long the answer may take, in milliseconds. */
const TIMEOUT = 10_000

const answered = z.object({
  profile: z.enum(['local', 'mainnet']),
  network: z.enum(['main', 'test']),
  genesis: z.string().transform(readOutpoint).optional(),
  difficulty: z.int().min(1).max(64).optional(),
  marker: z.string().max(255).optional(),
  tld: z.string().max(255).optional(),
})

/** The tree that a server follows, on its word. */
export interface ServerDeployment {
  profile: ProfileName
  network: Network
  deployment: Deployment
}

/** What the user has configured, to hold against what a server says. */
export interface ExpectedDeployment {
  profile?: ProfileName
  network?: Network
  deployment?: Deployment
}

/**
 * Asks a server which tree it follows (`/deployment.json`), and compares it with what the user has configured. What is
 * configured counts; a server that says otherwise is of no use.
 *
 * @param url Without a slash at the end.
 * @throws MiningError `NO_ANSWER`; `BAD_INDEX`, where it is another kind of server; `NO_TREE`; `OTHER_TREE`, with the
 * first difference.
 */
export async function serverDeployment(
  url: string,
  expected: ExpectedDeployment = {},
  { signal }: { signal?: AbortSignal } = {},
): Promise<ServerDeployment> {
  const { body } = await askJson({ url: `${url}/deployment.json`, timeout: TIMEOUT, signal })
  const asked = answered.safeParse(body)
  if (!asked.success) throw new MiningError('BAD_INDEX', `${url} is not a minetree server`)
  const { profile, network, genesis, difficulty, marker, tld } = asked.data
  requireSame(url, [['PROFILE', expected.profile, profile]])
  const deployment = deploymentOf(PROFILES[profile], {
    ...(genesis && { genesis }),
    ...(difficulty !== undefined && { difficulty }),
    ...(marker !== undefined && { nameMarker: marker }),
    ...(tld !== undefined && { nameTld: tld }),
  })
  if (genesis === undefined || deployment === undefined)
    throw new MiningError('NO_TREE', `${url} follows no tree of names`)
  const meant = expected.deployment
  requireSame(url, [
    ['NETWORK', expected.network, network],
    ['GENESIS', meant && formatOutpoint(meant.genesis), formatOutpoint(genesis)],
    ['DIFFICULTY', meant?.difficulty, deployment.difficulty],
    ['NAME_MARKER', meant && readUtf8(meant.marker), readUtf8(deployment.marker)],
    ...(meant ? ([['NAME_TLD', meant.tld ?? 'none', deployment.tld ?? 'none']] as const) : []),
  ])
  return { profile, network, deployment: meant ?? deployment }
}

type Setting = string | number | undefined

/** @throws MiningError `OTHER_TREE`. */
function requireSame(url: string, settings: (readonly [name: string, set: Setting, said: Setting])[]): void {
  for (const [name, set, said] of settings)
    if (set !== undefined && set !== said)
      throw new MiningError('OTHER_TREE', `${name} is ${set}, and ${url} follows ${said}`)
}
