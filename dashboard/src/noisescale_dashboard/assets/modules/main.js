/* What the page begins with: everything is registered and listens once this module is evaluated, and then Dash starts
   (serving/modules.py). Modules do nothing when they are imported: what they do is called here. */
import { watchMenus } from "./card/menu.js";
import { watchRaisedRun } from "./overview/raised-run.js";
import { watchSheet } from "./planner/sheet.js";
import { register } from "./register.js";
import { watchComments } from "./run/comments.js";
import { watchMoments } from "./run/moment.js";
import { watchCopies } from "./runs/copy.js";
import { watchListKeys } from "./runs/keys.js";
import { watchCallbacks } from "./shell/callbacks.js";
import { followLinks } from "./shell/history.js";
import { watchKeys } from "./shell/keys.js";
import { renewLogin } from "./shell/login.js";
import { hearAnswer, hearFailure, keepBeating } from "./shell/outage.js";
import { watchProjectLinks } from "./shell/project.js";
import { watchTeamViews } from "./shell/team-views.js";
import { drawOnlyChanges } from "./shell/plots.js";
import { tellWhatIsCut, watchDetails, watchSwitches } from "./shell/page.js";

register();
drawOnlyChanges(window.Plotly);

watchCallbacks({
  answered(response, isBeat) {
    renewLogin(response);
    hearAnswer(response, isBeat);
  },
  failed: hearFailure,
});
keepBeating();

watchSwitches();
watchProjectLinks();
followLinks();
watchDetails();
tellWhatIsCut();
watchSheet();
watchMoments();
watchRaisedRun();
watchMenus();
watchCopies();
watchTeamViews();
watchComments();
/* in this order: the letter after g is not for the list of runs, too */
watchKeys();
watchListKeys();
