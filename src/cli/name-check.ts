import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { HttpNameSource } from '../client/http-source.js'
import type { IndexReply, NameSource } from '../client/name-source.js'
import { type IndexReport, type ResolvedName, resolveName } from '../client/resolve.js'
import { SourceError } from '../client/source-error.js'
import { MiningError } from '../mining/mining-error.js'
import {
  type ComparedTerm,
  comparedTerms,
  type ServerDeployment,
  serverDeployment,
} from '../mining/server-deployment.js'
import { openHeadersSource } from '../server/chain/chain-tracker.js'
import { type Config, readConfig } from '../server/config/config.js'
import { cut } from '../server/telemetry/escape-control-chars.js'
import { CommandError } from './command-error.js'
import { expectedTree, isLoopback, KnownTrees } from './known-trees.js'
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
  /** Whose word the genesis is: the settings', that of these servers, or what one of them said when it was first asked. */
  genesisFrom: 'settings' | 'servers' | 'remembered'
}

/**
 * Resolves a name over HTTP, all of it checked, for whoever runs the command.
 *
 * @throws CommandError where the tip is spent, or no index says that it is not; and what `resolveName` and `readConfig`
 * throw.
 */
export async function checkName(options: NameCheckOptions): Promise<CheckedName> {
  const { name, requireProofs, output } = options
  const env = { ...options.env, ...(options.genesis && { GENESIS: options.genesis }) }
  const config = readConfig(env)
  for (const warning of config.warnings) output.warn(warning)
  const urls = [...new Set(options.urls.map(serverUrl))]
  const asked = { urls, config, env, knownTrees: KnownTrees.open(env), output }
  const { deployment, from } = await treeToCheck(asked)
  const sources = urls.map((url) => new TreeCheckedSource({ ...asked, url, deployment, from }))
  const resolved = await resolveName({
    name,
    deployment,
    sources,
    chainTracker: openHeadersSource(config) ?? 'scripts only',
    requireProofs,
  }).catch((error: unknown) => {
    // That all of them follow other trees says more than what is wrong with each proof.
    const { contradiction } = sources.find((source) => source.contradiction !== undefined) ?? {}
    throw contradiction === undefined || sources.some(({ isConfirmed }) => isConfirmed)
      ? error
      : contradiction
  })
  requireUnspent(resolved)
  return { ...resolved, config, genesis: formatOutpoint(deployment.genesis), genesisFrom: from }
}

function serverUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new CommandError(`not the URL of a server: ${JSON.stringify(text)}`, { exit: 'usage' })
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
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

interface TreeQuestion {
  urls: readonly string[]
  config: Config
  /** As set, for what has a default in `config`. */
  env: Record<string, string | undefined>
  knownTrees: KnownTrees
  output: CommandOutput
}

/**
 * The tree to check a name in: that of the settings; else the one that is remembered of the servers; else the one that they
 * all name now, which is then remembered of each that is not on this machine.
 *
 * @throws CommandError (`usage`) where they name different trees, or one that the settings contradict.
 */
async function treeToCheck(
  question: TreeQuestion,
): Promise<{ deployment: Deployment; from: CheckedName['genesisFrom'] }> {
  const { urls, config, knownTrees, output } = question
  if (config.deployment !== undefined)
    return { deployment: await treeOfSettings(config.deployment, question), from: 'settings' }
  const trees: { url: string; tree: ServerDeployment }[] = []
  for (const url of urls) {
    const tree = isLoopback(url) ? undefined : await knownTrees.treeOf(url)
    if (tree !== undefined) trees.push({ url, tree })
  }
  const isRemembered = trees.length > 0
  if (!isRemembered)
    trees.push(...(await Promise.all(urls.map(async (url) => ({ url, tree: await serverDeployment(url) })))))
  for (const { url, tree } of trees) requireConfigured(url, tree, question)
  const [first, ...others] = trees.map(({ tree }) => tree.deployment)
  if (first === undefined) throw new CommandError('no server is named to ask', { exit: 'usage' })
  if (others.some((other) => !isSameTree(other, first)))
    throw new CommandError('the servers follow different trees: set GENESIS to the one that is meant', {
      exit: 'usage',
    })
  if (isRemembered) return { deployment: first, from: 'remembered' }
  for (const { url, tree } of trees) await knownTrees.trust({ url, said: tree, output })
  return { deployment: first, from: 'servers' }
}

/**
 * The tree whose genesis is set. The rules that are not set are those that the servers name for it, as far as they follow
 * this tree and agree; else those of the profile, which are a guess.
 */
async function treeOfSettings(
  deployment: Deployment,
  { urls, config, output }: TreeQuestion,
): Promise<Deployment> {
  const { genesis, terms = {} } = expectedTree(config)
  const { covenantVersion, difficulty, nameMarker } = terms
  const isKnown = genesis === undefined || (covenantVersion && difficulty && nameMarker)
  if (isKnown) return deployment
  const expected = { profile: config.profile.name, genesis, terms }
  const said = await Promise.all(
    urls.map(async (url) => {
      try {
        return [(await serverDeployment(url, expected)).deployment]
      } catch (error) {
        if (error instanceof MiningError) return []
        throw error
      }
    }),
  )
  const [first, ...others] = said.flat()
  if (first === undefined) return deployment
  if (others.every((other) => isSameTree(other, first))) return first
  output.warn(
    `the servers name different rules for the tree of ${formatOutpoint(genesis)}: set COVENANT_VERSION, DIFFICULTY and NAME_MARKER`,
  )
  return deployment
}

/**
 * An index over HTTP that is asked which tree it follows as well. One that contradicts the settings, or what is remembered of
 * it, is set aside, and stops the command only where no other index is left: one liar among several stops nothing.
 */
class TreeCheckedSource implements NameSource {
  /** Why it is set aside. */
  contradiction: CommandError | undefined
  /** Whether it says that it follows the tree that is meant. */
  isConfirmed = false
  /** What it is called in reports. */
  readonly index: string
  private readonly source: HttpNameSource

  constructor(
    private readonly options: TreeQuestion & {
      url: string
      deployment: Deployment
      from: CheckedName['genesisFrom']
    },
  ) {
    this.source = new HttpNameSource({ url: options.url })
    this.index = this.source.index
  }

  async ask(...question: Parameters<NameSource['ask']>): Promise<IndexReply[]> {
    // Both at once, so that a slow index takes no longer than it would otherwise.
    const [replies] = await Promise.all([this.source.ask(...question), this.checkTree()])
    if (this.contradiction === undefined) return replies
    const error = new SourceError('BAD_ANSWER', this.contradiction.message, { cause: this.contradiction })
    return [{ index: this.index, kind: 'failed', error }]
  }

  private async checkTree(): Promise<void> {
    const { url, deployment, from, knownTrees, output } = this.options
    // It was asked a moment ago.
    if (from === 'servers') return
    try {
      const said = await serverDeployment(url)
      requireConfigured(url, said, this.options)
      if (from === 'remembered') {
        // A server that was never asked before has to follow the tree that the others are remembered for.
        if (!(await knownTrees.isKnown(url, said)) && !isSameTree(said.deployment, deployment))
          throw contradiction(
            `${url} follows the tree of ${formatOutpoint(said.deployment.genesis)}, and the others that of ${formatOutpoint(deployment.genesis)}`,
          )
        await knownTrees.trust({ url, said, output })
      }
      this.isConfirmed = true
    } catch (error) {
      if (error instanceof MiningError && error.code === 'NEWER_COVENANT') {
        this.contradiction = contradiction(error.message)
        return
      }
      // An index that does not say which tree it follows contradicts nothing: what it shows is checked like any other.
      if (error instanceof MiningError) return
      if (!(error instanceof CommandError)) throw error
      this.contradiction = error
    }
  }
}

/** @throws CommandError (`usage`) where a server follows another tree or network than what is set. */
function requireConfigured(
  url: string,
  said: ServerDeployment,
  { config, env }: Pick<TreeQuestion, 'config' | 'env'>,
): void {
  const { profile, network, deployment } = config
  const genesis = formatOutpoint(said.deployment.genesis)
  const configured = deployment && formatOutpoint(deployment.genesis)
  if (said.profile !== profile.name)
    throw contradiction(`${url} follows the ${said.profile} network, and PROFILE is ${profile.name}`)
  if (env.NETWORK && said.network !== network)
    throw contradiction(`${url} has addresses of NETWORK=${said.network}, and NETWORK is ${network}`)
  if (configured !== undefined && genesis !== configured)
    throw contradiction(
      env.GENESIS
        ? `${url} follows the tree of ${genesis}, and GENESIS is ${configured}`
        : `${url} follows the tree of ${genesis}, and that of PROFILE=${profile.name} is ${configured}`,
    )
  const { deployment: known } = expectedTree(config)
  const terms = { ...(known && { covenantVersion: known.covenantVersion }), ...config.setTerms }
  for (const [setting, set, named] of comparedTerms(terms, said.deployment))
    if (set !== undefined && set !== named)
      throw contradiction(
        `${url} names the ${TERMS[setting]} ${cut(String(named), 80)}, and ${setting} is ${set}`,
      )
}

/** What each setting of the rules of a tree is called. */
const TERMS: Record<ComparedTerm, string> = {
  COVENANT_VERSION: 'covenant version',
  DIFFICULTY: 'difficulty',
  NAME_MARKER: 'marker',
  NAME_TLD: 'TLD',
}

function contradiction(message: string): CommandError {
  return new CommandError(message, { exit: 'usage' })
}

function isSameTree(one: Deployment, other: Deployment): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Says which indexes did not agree with what was found, each in a line. */
export function noteDissent(reports: readonly IndexReport[], output: CommandOutput): void {
  for (const report of reports)
    if (report.verdict !== 'agrees')
      output.warn(`${report.index} is set aside (${report.verdict}): ${report.message}`)
}
