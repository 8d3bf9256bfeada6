import { startServer } from '../src/server/server.js'
import { GrownTree, type Readings } from './grown-tree.js'
import { processFolder } from './process-folder.js'
import { configFor, SILENT } from './support.js'

/** What the loading process is sent. */
export interface ProcessesReady {
  url: string
  readings: Readings
}

/** One of the processes that `processes` loads: our server on a MariaDB, which the first of them fills. */
const [url = '', what] = process.argv.slice(2)
const folder = processFolder()

const { chain, readings, submissions } = new GrownTree()
const config = configFor(chain, folder, { KNEX_URL: url })
const server = await startServer({ config, logger: SILENT })
if (what === 'fill') for (const each of submissions) await server.node.overlay.engine.submit(each)
process.send?.({ url: server.url, readings } satisfies ProcessesReady)
