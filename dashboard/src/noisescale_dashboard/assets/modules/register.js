/* What Dash, its table and its components look for on `window`: all that is ours there stands here. */
import { compareSearch, compareTab, compareView } from "./compare/view.js";
import { paintCompared } from "./compare/figures.js";
import { costView } from "./cost/view.js";
import { goToAnchor } from "./learn/anchor.js";
import { openClicked, overviewView } from "./overview/view.js";
import { plannerSliders } from "./planner/sliders.js";
import { plannerAsked, plannerView } from "./planner/view.js";
import { commentCancelled, commentDone, commentWanted } from "./run/comments.js";
import { besideAsked, layerClicked, layersAsked, partShown, recordsAsked, wasteLine } from "./run/asked.js";
import { copyFlags, limitsApplied, limitsShown } from "./run/limits.js";
import { momentPinned, momentSeries, momentWords } from "./run/moment.js";
import { remarksSaved, remarksShown } from "./run/remarks.js";
import { runView, runZoomed } from "./run/view.js";
import * as cells from "./runs/cells.js";
import { purgeLater, selectAsAddressed, selectionAddressed } from "./runs/chosen.js";
import { keepView, linkedViews, openSavedView, savedViews } from "./runs/saved-views.js";
import { sparklinesKept, sparklinesWanted, withSparklines } from "./runs/sparklines.js";
import { addCondition, runsExport, runsView } from "./runs/view.js";
import { projectSwitch } from "./shell/project.js";
import { paintAll, paintOne } from "./shell/figures.js";
import { findRun } from "./shell/find.js";
import { announce, liveWords, pulse, received, slowPulse } from "./shell/live.js";
import { Still } from "./shell/still.js";
import { teamViewDone, teamViewWanted } from "./shell/team-views.js";
import { switchTheme, watchWidth } from "./shell/theme.js";
import { showTarget, sweepsView, sweepView } from "./sweeps/view.js";

/** Callbacks by the name that `ClientsideFunction` calls them by. */
const CALLBACKS = {
  addCondition,
  announce,
  besideAsked,
  commentCancelled,
  commentDone,
  commentWanted,
  compareSearch,
  compareTab,
  compareView,
  copyFlags,
  costView,
  findRun,
  goToAnchor,
  keepView,
  layerClicked,
  layersAsked,
  limitsApplied,
  limitsShown,
  linkedViews,
  liveWords,
  momentPinned,
  momentSeries,
  momentWords,
  openClicked,
  openSavedView,
  overviewView,
  paintAll,
  paintCompared,
  paintOne,
  partShown,
  plannerAsked,
  plannerSliders,
  plannerView,
  projectSwitch,
  pulse,
  purgeLater,
  received,
  recordsAsked,
  remarksSaved,
  remarksShown,
  runsExport,
  runsView,
  runView,
  runZoomed,
  savedViews,
  selectAsAddressed,
  selectionAddressed,
  showTarget,
  slowPulse,
  sparklinesKept,
  sparklinesWanted,
  sweepsView,
  sweepView,
  switchTheme,
  teamViewDone,
  teamViewWanted,
  wasteLine,
  watchWidth,
  withSparklines,
};

const { keepOrder, reportSort, ...CELLS } = cells;

/* What others have put there stays, and so does the object: Dash's renderer holds it. */
function put(name, members) {
  window[name] = Object.assign(window[name] || {}, members);
}

export function register() {
  put("dash_clientside", { noisescale: CALLBACKS });
  put("dashAgGridFunctions", { keepOrder, reportSort });
  put("dashAgGridComponentFunctions", CELLS);
  put("noisescale_dashboard", { Still });
}
