import type { Writable } from 'node:stream'
import { z } from 'zod'
import { utf8 } from '../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { fetchBounded } from '../client/bounded-fetch.js'
import { HttpNameSource } from '../client/http-source.js'
import type { IndexReport, ResolvedName } from '../client/resolve.js'
import { resolveName } from '../client/resolve.js'
import { SourceError } from '../client/source-error.js'
import { openChainTracker } from '../server/chain-tracker.js'
import { type Config, readConfig } from '../server/config.js'

/** Why a name does not hold, or cannot be checked, in one line. */
export class NameCheckError extends Error {
  override readonly name = 'NameCheckError'
}

export interface NameCheckOptions {
  name: string
  /** Of the indexes. */
  urls: readonly string[]
  /** Outpoint of the tree; in place of GENESIS. */
  genesis?: string
  /** Take nothing that is in no block. */
  requireProofs: boolean
  /** The settings, as environment variables. */
  env: Record<string, string | undefined>
  /** Where remarks go. */
  notes: Writable
}

/** A name that was checked, and by what. */
export interface CheckedName extends ResolvedName {
  config: Config
  genesis: string
  /** Whose word the genesis is: the settings', or that of these servers. */
  genesisFrom: 'settings' | 'servers'
}

/**
 * Resolves a name over HTTP, all of it checked, for whoever runs the command.
 *
 * @throws NameCheckError where the tip is spent, or no index says that it is not; and what `resolveName` and `readConfig`
 * throw.
 */
export async function checkName(options: NameCheckOptions): Promise<CheckedName> {
  const { name, requireProofs, notes } = options
  const config = readConfig({ ...options.env, ...(options.genesis && { GENESIS: options.genesis }) })
  const urls = [...new Set(options.urls.map(serverUrl))]
  const deployment = config.deployment ?? (await deploymentFrom(urls, config))
  const genesis = formatOutpoint(deployment.genesis)
  const genesisFrom = config.deployment === undefined ? 'servers' : 'settings'
  if (genesisFrom === 'servers')
    notes.write(`minetree: the genesis ${genesis} is on the word of ${urls.join(', ')}: set GENESIS\n`)
  const resolved = await resolveName({
    name,
    deployment,
    sources: urls.map((url) => new HttpNameSource({ url })),
    chainTracker: openChainTracker(config),
    requireProofs,
  })
  requireUnspent(resolved)
  return { ...resolved, config, genesis, genesisFrom }
}

function serverUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new NameCheckError(`not the URL of a server: ${JSON.stringify(text)}`)
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/** BRC-174 section 4, step 4, which no proof can stand in for. */
function requireUnspent({ name, tip, spendStatus }: ResolvedName): void {
  const outpoint = formatOutpoint(tip.tip)
  if (spendStatus === 'spent')
    throw new NameCheckError(
      `${name} has left ${outpoint}: it is spent, to where no index shows; the name was burnt, or has moved on`,
    )
  if (spendStatus === 'disputed')
    throw new NameCheckError(`the indexes do not agree whether ${name} at ${outpoint} is spent`)
  if (spendStatus === 'unknown')
    throw new NameCheckError(`no index says whether ${name} at ${outpoint} is spent`)
}

const described = z.object({
  profile: z.string(),
  genesis: z
    .string()
    .transform((text) => parseOutpoint(text))
    .optional(),
  difficulty: z.int().min(1).max(64).optional(),
  nameContentType: z.string().optional(),
  marker: z.string().optional(),
  tld: z.string().optional(),
})

/** The tree of a local network, as its servers say; they have to say the same. */
async function deploymentFrom(urls: readonly string[], { profile }: Config): Promise<Deployment> {
  const said = await Promise.all(urls.map((url) => saidDeployment(url, profile.name)))
  const [first, ...others] = said
  if (first === undefined) throw new NameCheckError('no server is named to ask')
  const differs = others.some((other) => JSON.stringify(other) !== JSON.stringify(first))
  if (differs)
    throw new NameCheckError('the servers follow different trees: set GENESIS to the one that is meant')
  return first
}

async function saidDeployment(url: string, profile: string): Promise<Deployment> {
  const body = await deploymentFile(url)
  if (body.profile !== profile)
    throw new NameCheckError(`${url} follows the ${body.profile} network, and PROFILE is ${profile}`)
  const { genesis, difficulty, nameContentType, marker, tld } = body
  if (
    genesis === undefined ||
    difficulty === undefined ||
    nameContentType === undefined ||
    marker === undefined
  )
    throw new NameCheckError(`${url} follows no tree of names`)
  return { genesis, difficulty, nameContentType, marker: utf8(marker), ...(tld !== undefined && { tld }) }
}

/** More than any description of a tree has, in bytes. */
const MAX_DEPLOYMENT = 64 * 1024

async function deploymentFile(url: string): Promise<z.output<typeof described>> {
  try {
    const { body } = await fetchBounded(`${url}/deployment.json`, {}, { maxBytes: MAX_DEPLOYMENT })
    return described.parse(JSON.parse(Buffer.from(body).toString('utf8')))
  } catch (cause) {
    if (cause instanceof SourceError) throw new NameCheckError(cause.message, { cause })
    throw new NameCheckError(`${url} does not say which tree it follows: set GENESIS`, { cause })
  }
}

/** Says which indexes did not agree with what was found, each in a line. */
export function noteDissent(reports: readonly IndexReport[], notes: Writable): void {
  for (const report of reports)
    if (report.verdict !== 'agrees')
      notes.write(`minetree: ${report.index} is set aside (${report.verdict}): ${report.message}\n`)
}
