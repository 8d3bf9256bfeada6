import * as z from 'zod'
import type { Network } from '../../backend/src/protocol/address.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, readOutpoint } from '../../backend/src/protocol/outpoint.js'
import { deploymentOf, PROFILES, type ProfileName } from '../../backend/src/protocol/profile.js'
import { askJson } from './ask-json.js'
import { MiningError } from './mining-error.js'

/** How long the answer may take, in milliseconds. */
const PATIENCE = 10_000

const answered = z.object({
  profile: z.enum(['local', 'mainnet']),
  network: z.enum(['main', 'test']),
  genesis: z.string().transform(readOutpoint).optional(),
  difficulty: z.int().min(1).max(64).optional(),
  marker: z.string().optional(),
  tld: z.string().optional(),
})

/** The tree that a server follows, on its word. */
export interface ServerDeployment {
  profile: ProfileName
  network: Network
  deployment: Deployment
}

/**
 * Asks a server which tree it follows (`/deployment.json`).
 *
 * @param url Without a slash at the end.
 * @param expected The tree that is meant, where that is known: a server that follows another one is of no use.
 * @throws MiningError `NO_ANSWER`; `BAD_INDEX`, where it is another kind of server; `NO_TREE`; `OTHER_TREE`.
 */
export async function serverDeployment(url: string, expected?: Deployment): Promise<ServerDeployment> {
  const { body } = await askJson({ url: `${url}/deployment.json`, server: url, patience: PATIENCE })
  const asked = answered.safeParse(body)
  if (!asked.success) throw new MiningError('BAD_INDEX', `${url} is not a minetree server`)
  const { profile, network, genesis, difficulty, marker, tld } = asked.data
  const deployment = deploymentOf(PROFILES[profile], {
    ...(genesis && { genesis }),
    ...(difficulty !== undefined && { difficulty }),
    ...(marker !== undefined && { nameMarker: marker }),
    ...(tld !== undefined && { nameTld: tld }),
  })
  if (genesis === undefined || deployment === undefined)
    throw new MiningError('NO_TREE', `${url} follows no tree of names`)
  const meant = expected && formatOutpoint(expected.genesis)
  if (meant !== undefined && meant !== formatOutpoint(genesis))
    throw new MiningError(
      'OTHER_TREE',
      `${url} follows the tree of ${formatOutpoint(genesis)}, not of ${meant}`,
    )
  return { profile, network, deployment: expected ?? deployment }
}
