import { existsSync } from 'node:fs'
import type { Logger } from 'pino'
import { isDamage, isDamagedFile, StoreUnavailableError } from '../../backend/src/graph/errors.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { storeFiles } from '../../backend/src/writer/local-writer.js'
import type { Config } from './config/config.js'
import { ConfigError, reasonWithAdvice, StartError } from './config/errors.js'
import { placeOf } from './config/place.js'
import { RESTORE, removeIndexes } from './store/facts/folder.js'
import type { NodeIndex } from './store/index-status.js'
import { openFacts, type Stores } from './store/open-facts.js'
import { type Deploy, pinGenesis } from './store/pinned-genesis.js'
import { createOverlay, type Overlay } from './writer/overlay.js'

/** A node without HTTP: the store, and the overlay over it. */
export interface Node extends Omit<Stores, 'held' | 'logRead' | 'deriveBy'> {
  /** The settings, with the tree that the store holds. */
  config: Config
  overlay: Overlay
}

/** The thread of the writer, compiled beside this module or bundled with it. */
export const WRITER_THREAD = new URL('./writer-worker.js', import.meta.url)

/**
 * Opens the store named in the settings, and the overlay over it.
 *
 * @throws StartError if the store cannot be opened; ConfigError if it holds another tree than the settings name.
 */
export async function openNode(options: NodeOptions): Promise<Node> {
  const { config, logger } = options
  try {
    return await open(options)
  } catch (error) {
    const { index } = storeFiles(config.dataDir)
    // SQLite does not say which file is damaged. The index can be derived again, so try that.
    if (!isDamagedFile(error) || !existsSync(index)) throw error
    logger.warn({ index, err: error }, 'the index may be damaged: deriving it again')
    removeIndexes(config.dataDir)
    return await open(options)
  }
}

interface NodeOptions {
  config: Config
  logger: Logger
  /** Makes a tree for an empty store if the settings name none. */
  deploy?: Deploy
  /** The compiled `writer-worker`; without it, this thread writes. */
  writerThread?: URL | undefined
  onIndex?: (index: NodeIndex) => void
}

async function open({ config: settings, logger, deploy, writerThread, onIndex }: NodeOptions): Promise<Node> {
  let stores: Stores | undefined
  let overlay: Overlay | undefined
  const close = async (): Promise<void> => {
    await stores?.index.close()
    await overlay?.close()
    await stores?.close()
  }
  try {
    stores = await openFacts(settings, {
      onReorg(transactions) {
        logger.warn({ transactions }, 'a conflict was resolved differently: a branch was reorganised')
        overlay?.emit({ kind: 'reorganised', transactions })
      },
      ...{ logger, writerThread },
    })
    const { held, logRead, deriveBy, ...opened } = stores
    const { graph, index } = opened
    onIndex?.(index)
    await logRead
    const { config, deployed } = await pinGenesis({ graph, config: settings, ...(deploy && { deploy }) })
    const { setTerms, deployment } = config
    if (deployment && (setTerms.covenantVersion ?? deployment.covenantVersion) !== deployment.covenantVersion)
      logger.warn(`COVENANT_VERSION: the log says ${deployment.covenantVersion}, which holds`)
    await deriveBy(config)
    overlay = createOverlay({ config, graph, held, logger })
    if (deployed !== undefined) await overlay.engine.submit({ beef: deployed.beef, topics: [TOPICS.names] })
    overlay.engine.writes.index = index
    return { ...opened, config, overlay, close }
  } catch (error) {
    await close()
    if (error instanceof ConfigError) throw error
    const reason = reasonWithAdvice(error instanceof StoreUnavailableError ? error.cause : error)
    const place = placeOf(settings)
    throw new StartError(
      isDamage(error)
        ? `the store in ${place} is damaged, ${reason}: ${RESTORE}`
        : `cannot open the store in ${place}: ${reason}`,
      { cause: error },
    )
  }
}
