// Moves the mouse over charts.
#pragma once

#include <imgui_internal.h>
#include <imgui_te_context.h>
#include <implot.h>
#include <implot_internal.h>

namespace scripted {

/// Scrolls a chart of the current window into view and moves the mouse to an x of it.
inline void move_to_x(ImGuiTestContext* ctx, const char* chart, double x) {
  ctx->ScrollToItemY(chart);
  ctx->Yield(2);
  const ImPlotPlot* plot = GImPlot->Plots.GetByKey(ctx->ItemInfo(chart).ID);
  IM_CHECK(plot != nullptr);
  ctx->MouseMoveToPos({plot->Axes[ImAxis_X1].PlotToPixels(x), plot->PlotRect.GetCenter().y});
  ctx->Yield(2);
}

}  // namespace scripted
