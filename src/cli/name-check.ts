import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { HttpNameSource } from '../client/http-source.js'
import { type IndexReport, type ResolvedName, resolveName } from '../client/resolve.js'
import { serverDeployment } from '../mining/server-deployment.js'
import { openHeadersSource } from '../server/chain-tracker.js'
import { type Config, readConfig } from '../server/config.js'
import { CommandError } from './command-error.js'
import type { CommandOutput } from './output.js'

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
  output: CommandOutput
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
 * @throws CommandError where the tip is spent, or no index says that it is not; and what `resolveName` and `readConfig`
 * throw.
 */
export async function checkName(options: NameCheckOptions): Promise<CheckedName> {
  const { name, requireProofs, output } = options
  const config = readConfig({ ...options.env, ...(options.genesis && { GENESIS: options.genesis }) })
  for (const warning of config.warnings) output.warn(warning)
  const urls = [...new Set(options.urls.map(serverUrl))]
  const deployment = config.deployment ?? (await deploymentFrom(urls, config))
  const genesis = formatOutpoint(deployment.genesis)
  const genesisFrom = config.deployment === undefined ? 'servers' : 'settings'
  // A server on this machine is the user's own, and the tree of a local network is nobody else's to know.
  if (genesisFrom === 'servers' && !urls.every(isLoopback))
    output.warn(`the genesis ${genesis} is on the word of ${urls.join(', ')}: set GENESIS`)
  const resolved = await resolveName({
    name,
    deployment,
    sources: urls.map((url) => new HttpNameSource({ url })),
    chainTracker: openHeadersSource(config) ?? 'scripts only',
    requireProofs,
  })
  requireUnspent(resolved)
  return { ...resolved, config, genesis, genesisFrom }
}

function serverUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new CommandError(`not the URL of a server: ${JSON.stringify(text)}`, { exit: 'usage' })
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

function isLoopback(url: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
}

/** BRC-174 section 4, step 4, which no proof can stand in for. */
function requireUnspent({ name, tip, spendStatus }: ResolvedName): void {
  const outpoint = formatOutpoint(tip.tip)
  if (spendStatus === 'spent')
    throw new CommandError(
      `${name} has left ${outpoint}: it is spent, to where no index shows; the name was burnt, or has moved on`,
    )
  if (spendStatus === 'disputed')
    throw new CommandError(`the indexes do not agree whether ${name} at ${outpoint} is spent`)
  if (spendStatus === 'unknown')
    throw new CommandError(`no index says whether ${name} at ${outpoint} is spent`)
}

/** The tree of a local network, as its servers say; they have to say the same. */
async function deploymentFrom(urls: readonly string[], { profile }: Config): Promise<Deployment> {
  const said = await Promise.all(urls.map((url) => serverDeployment(url)))
  const [first, ...others] = said.map(({ deployment }) => deployment)
  if (first === undefined) throw new CommandError('no server is named to ask', { exit: 'usage' })
  const stranger = said.find((server) => server.profile !== profile.name)
  if (stranger !== undefined)
    throw new CommandError(
      `the server follows the ${stranger.profile} network, and PROFILE is ${profile.name}`,
      { exit: 'usage' },
    )
  if (others.some((other) => JSON.stringify(other) !== JSON.stringify(first)))
    throw new CommandError('the servers follow different trees: set GENESIS to the one that is meant', {
      exit: 'usage',
    })
  return first
}

/** Says which indexes did not agree with what was found, each in a line. */
export function noteDissent(reports: readonly IndexReport[], output: CommandOutput): void {
  for (const report of reports)
    if (report.verdict !== 'agrees')
      output.warn(`${report.index} is set aside (${report.verdict}): ${report.message}`)
}
