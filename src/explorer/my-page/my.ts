import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import '../mine-page/no-eval.js'
import { serverDeployment } from '../../mining/server-deployment.js'
import { element } from '../mine-page/elements.js'
import { MyNames } from './my-names.js'

const url = new URL('..', import.meta.url).href.replace(/\/$/, '')

try {
  await new MyNames({ server: await serverDeployment(url), url }).open()
} catch (error) {
  const state = element('names-state', HTMLElement)
  state.className = 'error'
  state.textContent = `Nothing can be done here: ${messageOf(error)}.`
}
