import { join } from 'node:path'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { SourceError } from '../client/errors.js'
import { FileSegmentStore } from '../client/file-segment-store.js'
import { type AskBounds, HttpNameSource, type IndexReply, type NameSource } from '../client/name-source.js'
import { type IndexReport, type KnownIdentities, type ResolvedName, resolveName } from '../client/resolve.js'
import { Segments } from '../client/segments.js'
import { MiningError } from '../mining/mining-error.js'
import {
  type ExpectedDeployment,
  requireSame,
  type ServerDeployment,
  serverDeployment,
} from '../mining/server-deployment.js'
import { treeDifference } from '../mining/tree-difference.js'
import type { Config } from '../server/config/config.js'
import { CommandError, type Running, readSettings, usageError } from './command.js'
import { expectedTree, isLoopback, KnownTrees } from './known-trees.js'
import type { CommandOutput } from './output.js'
import { serverUrl } from './overlay-server.js'
import { type CommandHeaders, openOwnHeaders } from './own-headers.js'
import { userFolder } from './user-files.js'

export interface NameCheckOptions extends Running {
  name: string
  urls: readonly string[]
  /** The genesis of the tree; overrides GENESIS. */
  genesis?: string
  /** Accepts only what is in a block. */
  requireProofs: boolean
  /** Whether verified parts are used again and kept; by default, only block headers are. */
  cache?: boolean
  /** The known names of a tree. */
  known?: (genesis: string) => Promise<KnownIdentities>
  /** The settings, as environment variables. */
  env: Record<string, string | undefined>
}

/** A verified name, and what it was verified against. */
export interface CheckedName extends ResolvedName {
  config: Config
  genesis: string
  /** The source of the genesis: the settings, these servers, or what one of them said when it was first asked. */
  genesisFrom: 'settings' | 'servers' | 'remembered'
  chainTracker: CommandHeaders
  /** The transactions that have moved it, from the only server; undefined if several answers were needed. */
  provenance: Uint8Array | undefined
}

/**
 * Resolves and verifies a name over HTTP.
 *
 * @throws CommandError if the tip is spent, or no index says that it is not; errors of `resolveName` and `readConfig`.
 */
export async function checkName(options: NameCheckOptions): Promise<CheckedName> {
  const { name, requireProofs, output, signal, cache } = options
  const env = { ...options.env, ...(options.genesis && { GENESIS: options.genesis }) }
  const config = readSettings({ output }, env)
  const urls = [...new Set(options.urls.map((url) => serverUrl(url)))]
  const asked = { urls, config, env, knownTrees: new KnownTrees(env), output, signal }
  const { deployment, from, agreed } = await treeToCheck(asked)
  const chainTracker = openOwnHeaders(config, { env, output, signal, keeps: cache !== false })
  // Before servers are asked: fetching headers would take from their time.
  if (chainTracker !== 'scripts only') await chainTracker.currentHeight()
  const sources = urls.map((url) => new TreeCheckedSource({ ...asked, url, deployment, from, agreed }))
  const resolved = await resolveName({
    name,
    deployment,
    sources,
    chainTracker,
    requireProofs,
    signal,
    ...(cache && {
      segments: new Segments({
        store: new FileSegmentStore({ folder: join(userFolder(env, 'XDG_CACHE_HOME'), 'segments') }),
      }),
    }),
    ...(options.known && { known: await options.known(formatOutpoint(deployment.genesis)) }),
  }).catch((error: unknown) => {
    // If all servers follow other trees, that is the better explanation.
    const { contradiction } = sources.find((source) => source.contradiction !== undefined) ?? {}
    throw contradiction === undefined || sources.some(({ isConfirmed }) => isConfirmed)
      ? error
      : contradiction
  })
  requireUnspent(resolved)
  const genesis = formatOutpoint(deployment.genesis)
  const provenance = sources.length === 1 ? sources[0]?.provenance : undefined
  return { ...resolved, config, genesis, genesisFrom: from, chainTracker, provenance }
}

/** BRC-174 section 4, step 4: no proof can show this. */
function requireUnspent({ name, tip, spendStatus }: ResolvedName): void {
  const outpoint = formatOutpoint(tip.tip)
  const reasons = {
    unspent: undefined,
    spent: `${name} was burnt or has moved: ${outpoint} is spent, and no index shows where it went; try again later`,
    disputed: `the indexes disagree on whether ${name} at ${outpoint} is spent: try again later, or ask other indexes`,
    unknown: `no index says whether ${name} at ${outpoint} is spent: try again later, or ask other indexes`,
  }
  const reason = reasons[spendStatus]
  if (reason !== undefined) throw new CommandError(reason)
}

interface AgreedTree {
  deployment: Deployment
  from: CheckedName['genesisFrom']
  /** The servers that have just named this tree. */
  agreed: ReadonlySet<string>
}

interface TreeQuestion extends Running {
  urls: readonly string[]
  config: Config
  /** The raw settings, to distinguish those that are set from defaults in `config`. */
  env: Record<string, string | undefined>
  knownTrees: KnownTrees
}

/**
 * The tree to check a name in: that of the settings; otherwise the one remembered for the servers; otherwise the one that servers
 * name now, which is then remembered for each of them that is not on this machine.
 *
 * @throws CommandError (`usage`) if they name different trees, or all contradict the settings.
 */
async function treeToCheck(question: TreeQuestion): Promise<AgreedTree> {
  const { urls, config, knownTrees, output } = question
  if (config.deployment !== undefined) {
    const deployment = await treeOfSettings(config.deployment, question)
    return { deployment, from: 'settings', agreed: new Set() }
  }
  const trees: { url: string; tree: ServerDeployment }[] = []
  for (const url of urls) {
    const tree = isLoopback(url) ? undefined : await knownTrees.treeOf(url)
    if (tree !== undefined) trees.push({ url, tree })
  }
  const isRemembered = trees.length > 0
  for (const { url, tree } of trees) requireSame(url, treeDifference(configured(question), tree))
  if (!isRemembered) trees.push(...(await treesNamedNow(question)))
  const [first, ...others] = trees.map(({ tree }) => tree.deployment)
  if (first === undefined) throw usageError('no server to ask: use --url')
  if (others.some((other) => !isSameTree(other, first)))
    throw usageError('the servers follow different trees: set GENESIS to the right one')
  if (isRemembered) return { deployment: first, from: 'remembered', agreed: new Set() }
  for (const { url, tree } of trees) await knownTrees.trust({ url, said: tree, output })
  return { deployment: first, from: 'servers', agreed: new Set(trees.map(({ url }) => url)) }
}

/** The trees that servers name. Why a server is set aside is reported once it is asked for the name, unless no server is left. */
async function treesNamedNow(question: TreeQuestion): Promise<{ url: string; tree: ServerDeployment }[]> {
  const { urls, signal } = question
  const answers = await Promise.allSettled(
    urls.map(async (url) => {
      return { url, tree: await serverDeployment(url, configured(question), { signal }) }
    }),
  )
  const named = answers.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  const failure = answers.find((each) => each.status === 'rejected')
  if (named.length === 0 && failure !== undefined) throw failure.reason
  return named
}

/**
 * The tree whose genesis is set. Rules that are not set come from the servers that follow this tree, if they agree;
 * otherwise from the profile, which is a guess.
 */
async function treeOfSettings(
  deployment: Deployment,
  { urls, config, output, signal }: TreeQuestion,
): Promise<Deployment> {
  const { genesis, terms = {} } = expectedTree(config)
  const { covenantVersion, difficulty, nameMarker } = terms
  const isKnown = genesis === undefined || (covenantVersion && difficulty && nameMarker)
  if (isKnown) return deployment
  const expected = { profile: config.profile.name, genesis, terms }
  const said = await Promise.all(
    urls.map(async (url) => {
      try {
        return [(await serverDeployment(url, expected, { signal })).deployment]
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
 * An index over HTTP that is also asked which tree it follows. If that contradicts the settings, or the remembered tree, the
 * index is set aside; the command only stops if no other index is left: one liar among several stops nothing.
 */
class TreeCheckedSource implements NameSource {
  /** Why the index is set aside. */
  contradiction: CommandError | undefined
  /** Whether it says that it follows the expected tree. */
  isConfirmed: boolean
  /** The provenance of the name, if the last answer had all of it. */
  provenance: Uint8Array | undefined
  /** The name of the index in reports. */
  readonly index: string
  private readonly source: HttpNameSource

  constructor(private readonly options: TreeQuestion & AgreedTree & { url: string }) {
    this.isConfirmed = options.agreed.has(options.url)
    this.source = new HttpNameSource({ url: options.url })
    this.index = this.source.index
  }

  async ask(name: string, bounds?: AskBounds): Promise<IndexReply[]> {
    // Both at once, so that a slow index takes no longer.
    const [replies] = await Promise.all([this.source.ask(name, bounds), this.checkTree()])
    const [reply] = replies
    const evidence = reply?.kind === 'claimed' && bounds?.known === undefined ? reply.evidence : undefined
    this.provenance = evidence?.form === 'proofs' ? evidence.provenance : undefined
    if (this.contradiction === undefined) return replies
    const error = new SourceError('BAD_ANSWER', this.contradiction.message, { cause: this.contradiction })
    return [{ index: this.index, kind: 'failed', error }]
  }

  private async checkTree(): Promise<void> {
    const { url, deployment, from, knownTrees, output, signal } = this.options
    if (this.isConfirmed) return
    try {
      const said = await serverDeployment(url, configured(this.options), { signal })
      if (from !== 'settings') {
        // A server that is not remembered yet must follow the tree remembered for the others.
        if (!(await knownTrees.isKnown(url, said)) && !isSameTree(said.deployment, deployment))
          throw usageError(
            `${url} follows the tree of ${formatOutpoint(said.deployment.genesis)}, but the other servers follow ${formatOutpoint(deployment.genesis)}`,
          )
        await knownTrees.trust({ url, said, output })
      }
      this.isConfirmed = true
    } catch (error) {
      if (error instanceof MiningError && ['NEWER_COVENANT', 'OTHER_TREE'].includes(error.code)) {
        this.contradiction = usageError(error.message)
        return
      }
      // An index that does not say which tree it follows contradicts nothing: its proofs are checked like any others.
      if (error instanceof MiningError) return
      if (!(error instanceof CommandError)) throw error
      this.contradiction = error
    }
  }
}

/** The settings, which no server may contradict. */
function configured({ config, env }: Pick<TreeQuestion, 'config' | 'env'>): ExpectedDeployment {
  const { deployment: whole } = expectedTree(config)
  return {
    profile: config.profile.name,
    ...(env.NETWORK && { network: config.network }),
    ...(config.deployment && { genesis: config.deployment.genesis }),
    terms: { ...(whole && { covenantVersion: whole.covenantVersion }), ...config.setTerms },
  }
}

function isSameTree(one: Deployment, other: Deployment): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Warns about each index that does not agree with the result. */
export function noteDissent(reports: readonly IndexReport[], output: CommandOutput): void {
  for (const report of reports)
    if (report.verdict !== 'agrees')
      output.warn(`ignoring ${report.index} (${report.verdict}): ${report.message}`)
}
