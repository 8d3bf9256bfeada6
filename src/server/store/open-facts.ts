import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { FactStore } from '../../../backend/src/read/fact-store.js'
import { Reader } from '../../../backend/src/read/reader.js'
import { LocalWriter, storeFiles } from '../../../backend/src/writer/local-writer.js'
import type { Config } from '../config/config.js'
import { FactIndex } from './facts/fact-index.js'
import { lockFolder } from './open-database.js'
import type { Stores } from './open-mongo.js'

/** A store of facts: it makes its index complete by itself, and writes to it wait in a queue of its own. */
export interface FactStores extends Omit<Stores, 'maintenance'> {
  index: FactIndex
  /** From now on admissions are derived by these rules: the index follows from the log only then. */
  deriveBy(admission: AdmissionOptions): void
  /** A port by which another thread of this process writes; missing if only this one does. */
  shareWriter?: () => MessagePort
}

/**
 * Opens the store of facts in the settings. Its index follows from the log once it is known by which rules
 * ({@link FactStores.deriveBy}).
 *
 * @throws as `lockFolder`, and what SQLite throws.
 */
export async function openFacts(
  { dataDir }: Pick<Config, 'dataDir'>,
  { onReorg, logger }: { onReorg: (transactions: number) => void; logger: Logger },
): Promise<FactStores> {
  const unlock = await lockFolder(dataDir, 'facts')
  let writer: LocalWriter | undefined
  let reader: Reader | undefined
  const close = async (): Promise<void> => {
    await writer?.close()
    reader?.close()
    unlock()
  }
  try {
    const opened = new LocalWriter({ folder: dataDir })
    writer = opened
    const read = new Reader(storeFiles(dataDir))
    reader = read
    const graph = new FactStore({ reader, writer, onReorg })
    const { held, ancestors, outbox } = graph
    const facts = (): number =>
      Number(read.single((sql) => sql.get('select max(seq) as seq from log.log'))?.seq ?? 0)
    return {
      ...{ graph, held, ancestors, outbox },
      index: new FactIndex({ writer, facts, onComplete: () => graph.blocklist.refresh(), logger }),
      deriveBy: (admission) => opened.deriveBy(admission),
      failedHooksWaiting: () => outbox.waiting(),
      isShared: false,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
