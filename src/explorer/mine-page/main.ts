import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import './no-eval.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { serverDeployment } from '../../mining/server-deployment.js'
import { element, make } from './elements.js'
import { MiningForm } from './mining-form.js'

const url = new URL('..', import.meta.url).href.replace(/\/$/, '')
const tree = element('tree', HTMLElement)

try {
  const server = await serverDeployment(url)
  const { deployment, profile } = server
  const network = profile === 'local' ? 'a local network' : 'the live network'
  const genesis = formatOutpoint(deployment.genesis)
  tree.replaceChildren(
    'This server follows the tree of ',
    make('code', { title: genesis }, `${genesis.slice(0, 8)}…${genesis.slice(-6)}`),
    `, on ${network}. Each character takes a hash with ${deployment.difficulty} zero bits.`,
  )
  new MiningForm({ server, url, workerUrl: new URL('search-worker.js', import.meta.url) }).open()
} catch (error) {
  tree.className = 'error'
  tree.setAttribute('role', 'alert')
  tree.textContent = `Nothing can be mined here: ${messageOf(error)}.`
}
